"""An access rule, the check of a new one, and the filters that find rules (`AclBinding`, `AclBindingFilter`).

```
User:alice from 10.0.0.7   may   read    topics whose name starts with "orders-"
principal       host  permission operation  resource type, pattern type, name
```

Principals and hosts are compared as text. `User:*` is every client and host `*` every address. Principals of other
types than `User` can be stored, and match nobody. A resource `*` that is LITERAL is every resource of its type.
"""

from __future__ import annotations

import msgspec

from odradek.protocol.access_rules import (
    CLUSTER_NAME,
    EVERY_HOST,
    EVERY_RESOURCE,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from odradek.protocol.errors import ErrorCode, KafkaError

MOST_CHARACTERS = 4096
"""The most characters of a principal, a host or a name. Differs from Kafka, because each is kept in memory."""


class AccessRule(msgspec.Struct, frozen=True, order=True, gc=False):
    """Allows or denies a principal, at a host, an operation on the resources that a pattern names.

    `principal` is text of the form `type:name`. Two rules with the same fields are one rule.
    """

    resource_type: ResourceType
    pattern_type: PatternType
    name: str
    principal: str
    host: str
    operation: Operation
    permission: PermissionType

    def __str__(self) -> str:
        verb = "may" if self.permission is PermissionType.ALLOW else "must not"
        pattern = f"prefix {self.name}" if self.pattern_type is PatternType.PREFIXED else self.name
        where = "" if self.host == EVERY_HOST else f" from {self.host}"
        return f"{self.principal}{where} {verb} {self.operation.name} {self.resource_type.name} {pattern}"


class RuleFilter(msgspec.Struct, frozen=True):
    """Finds rules. None and ANY match everything.

    With the pattern type MATCH, `name` is that of a resource, and the filter matches each rule that concerns it: the
    literal one, that of `*`, and those of its prefixes. With ANY, `name` is compared with the name in the rule.
    """

    resource_type: ResourceType = ResourceType.ANY
    pattern_type: PatternType = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: PermissionType = PermissionType.ANY

    def matches(self, rule: AccessRule) -> bool:
        """Return whether the filter finds the rule."""
        return (
            self.resource_type in (ResourceType.ANY, rule.resource_type)
            and (self.principal is None or self.principal == rule.principal)
            and (self.host is None or self.host == rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (PermissionType.ANY, rule.permission)
            and self._matches_pattern(rule)
        )

    def _matches_pattern(self, rule: AccessRule) -> bool:
        wanted, name = self.pattern_type, self.name
        if wanted not in (PatternType.ANY, PatternType.MATCH, rule.pattern_type):
            return False
        if name is None:
            return True
        if wanted is not PatternType.MATCH:
            return name == rule.name
        if rule.pattern_type is PatternType.PREFIXED:
            return name.startswith(rule.name)
        return rule.name in (name, EVERY_RESOURCE)

    def single_rule(self) -> AccessRule | None:
        """Return the only rule that the filter can match; None if it can match several."""
        if (
            self.resource_type is ResourceType.ANY
            or self.pattern_type in (PatternType.ANY, PatternType.MATCH)
            or self.operation is Operation.ANY
            or self.permission is PermissionType.ANY
            or self.name is None
            or self.principal is None
            or self.host is None
        ):
            return None
        return AccessRule(
            self.resource_type,
            self.pattern_type,
            self.name,
            self.principal,
            self.host,
            self.operation,
            self.permission,
        )


def check_rule(rule: AccessRule) -> None:
    """Raise `KafkaError` INVALID_REQUEST for a rule that cannot be stored, with Kafka's texts.

    As in Kafka an operation need not make sense for the resource, and names and hosts may be any text.
    """
    if rule.resource_type is ResourceType.CLUSTER and rule.name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not rule.name:
        raise _invalid("Invalid empty resource name")
    if rule.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {rule.resource_type.name}")
    if rule.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {rule.pattern_type.name}")
    if rule.operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {rule.operation.name}")
    if rule.permission not in (PermissionType.DENY, PermissionType.ALLOW):
        raise _invalid(f"Invalid permissionType {rule.permission.name}")
    for what, text in (("resource name", rule.name), ("principal", rule.principal), ("host", rule.host)):
        if len(text) > MOST_CHARACTERS:
            raise _invalid(f"The {what} has {len(text)} characters, more than {MOST_CHARACTERS}")
    if ":" not in rule.principal:
        raise _invalid(
            f"Could not parse principal from `{rule.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)
