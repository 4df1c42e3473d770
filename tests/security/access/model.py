"""Random access rules, and a plain model of the decisions, which examines every rule."""

from __future__ import annotations

import random
from collections.abc import Iterable

from odradek.broker.security.access.rule import AccessRule
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType

TYPES = [each for each in ResourceType if each > ResourceType.ANY]
OPERATIONS = [each for each in Operation if each > Operation.ANY]
PATTERNS = [PatternType.LITERAL, PatternType.PREFIXED]
PERMISSIONS = [PermissionType.DENY, PermissionType.ALLOW]
INCLUDED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def is_for_resource(rule: AccessRule, resource_type: ResourceType, name: str) -> bool:
    if rule.resource_type is not resource_type:
        return False
    if rule.pattern_type is PatternType.PREFIXED:
        return name.startswith(rule.name)
    return rule.name in (name, "*")


def is_for_client(rule: AccessRule, principal: str, host: str) -> bool:
    return rule.principal in (principal, "User:*") and rule.host in (host, "*")


def concerns(rule: AccessRule, operation: Operation) -> bool:
    if rule.operation in (Operation.ALL, operation):
        return True
    return rule.permission is PermissionType.ALLOW and rule.operation in INCLUDED.get(operation, ())


def allows(
    rules: Iterable[AccessRule],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *,
    allow_everyone: bool,
) -> bool:
    of_resource = [rule for rule in rules if is_for_resource(rule, resource_type, name)]
    if not of_resource:
        return allow_everyone
    found = {
        rule.permission for rule in of_resource if is_for_client(rule, principal, host) and concerns(rule, operation)
    }
    return found == {PermissionType.ALLOW}


def random_rules(
    source: random.Random, count: int, names: list[str], principals: list[str], hosts: list[str]
) -> list[AccessRule]:
    fields = (TYPES, PATTERNS, names, principals, hosts, OPERATIONS, PERMISSIONS)
    return list(map(AccessRule, *(source.choices(values, k=count) for values in fields)))
