"""Access rules and filters of them, as arguments and results of calls. The codes are those of the protocol.

A rule allows or denies a principal one operation on the resources of a name or a prefix. In Kafka: `AclBinding` and
`AclBindingFilter`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from odradek.protocol.access_rules import EVERY_HOST
from odradek.protocol.access_rules import Operation as AclOperation
from odradek.protocol.access_rules import PatternType as AclPatternType
from odradek.protocol.access_rules import PermissionType as AclPermission
from odradek.protocol.access_rules import ResourceType as AclResourceType

__all__ = [
    "EVERYBODY",
    "EVERY_RULE",
    "AclFilter",
    "AclOperation",
    "AclPatternType",
    "AclPermission",
    "AclResourceType",
    "AclRule",
]

EVERYBODY: Final = "User:*"
"""The principal of a rule for all users."""


class AclRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule. `principal` has its type before it: `User:alice`; `host` is an IP address, or `*` for any."""

    resource_type: AclResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    pattern_type: AclPatternType = AclPatternType.LITERAL
    host: str = EVERY_HOST

    def __str__(self) -> str:
        prefix = "prefix " if self.pattern_type is AclPatternType.PREFIXED else ""
        verb = "may not" if self.permission is AclPermission.DENY else "may"
        where = "" if self.host == EVERY_HOST else f" from {self.host}"
        place = f"{self.resource_type.words} {prefix}{self.resource_name}"
        return f"{self.principal} {verb} {self.operation.words} {place}{where}"

    @property
    def filter(self) -> AclFilter:
        """The filter that finds this rule and no other."""
        return AclFilter(
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission=self.permission,
        )


class AclFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions of rules; ANY and None are none. Operations are compared, not implied: READ does not find ALL."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: AclPatternType = AclPatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY


EVERY_RULE: Final = AclFilter()
