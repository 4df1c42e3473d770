"""Access rules and filters of them, as arguments and results of calls. The codes are those of the protocol.

A rule allows or denies a principal one operation on the resources of a name or a prefix. In Kafka: `AclBinding` and
`AclBindingFilter`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of the type CLUSTER."""
EVERYTHING: Final = "*"
"""As the name of a literal rule: every resource of its type. As a host: every address."""
EVERYBODY: Final = "User:*"
"""The principal of a rule for all users."""


class _Code(IntEnum):
    """A code of the protocol; one of a newer broker is UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> _Code:  # noqa: ARG003 - all others are UNKNOWN
        return cls["UNKNOWN"]

    @property
    def words(self) -> str:
        """The name in messages and on command lines, as in Kafka's: `describe configs`, `transactional id`."""
        return self.name.lower().replace("_", " ")


class AclResourceType(_Code):
    """The type of the resources that a rule is about."""

    UNKNOWN = 0
    ANY = 1  # of filters
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclOperation(_Code):
    """The operation that a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1  # of filters
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPatternType(_Code):
    """The way in which a rule names its resources."""

    UNKNOWN = 0
    ANY = 1  # of filters
    MATCH = 2  # of filters: every rule that concerns a resource of that name
    LITERAL = 3
    PREFIXED = 4


class AclPermission(_Code):
    """Whether a rule denies, which wins, or allows."""

    UNKNOWN = 0
    ANY = 1  # of filters
    DENY = 2
    ALLOW = 3


class AclRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule. `principal` has its type before it: `User:alice`; `host` is an IP address, or `*` for any."""

    resource_type: AclResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    pattern_type: AclPatternType = AclPatternType.LITERAL
    host: str = EVERYTHING

    def __str__(self) -> str:
        prefix = "prefix " if self.pattern_type is AclPatternType.PREFIXED else ""
        verb = "may not" if self.permission is AclPermission.DENY else "may"
        where = "" if self.host == EVERYTHING else f" from {self.host}"
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
