"""The evaluation of access rules, as by Kafka's StandardAuthorizer, without a broker: the rule that decides.

1. A rule concerns a request if resource, principal and host match. A literal rule is for its name or, as `*`, for
   every resource of its type; a prefixed one for the names that begin with it. `User:*` is every user, the host `*`
   every one.
2. A DENY rule for the operation or ALL decides before any ALLOW rule.
3. An ALLOW rule is for its operation, ALL for each, and some imply others: READ, WRITE, DELETE and ALTER imply
   DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS.
4. Otherwise the answer is no, except that a resource without any rule is open if the brokers have
   `allow.everyone.if.no.acl.found`.

Super users are above all this; only the brokers know them. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from odradek.client.admin.acl_values import (
    EVERYBODY,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    AclRule,
)
from odradek.protocol.access_rules import EVERY_HOST, EVERY_RESOURCE

IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
"""The operations whose ALLOW rules allow another one, too."""


class Request(NamedTuple):
    """An operation of a principal on a resource, from an address."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: AclResourceType
    resource_name: str


class Decision(NamedTuple):
    """Whether it may, and the rule that decides; None: no rule does."""

    is_allowed: bool
    rule: AclRule | None
    has_rules: bool  # whether there is any rule for the resource


def decide(rules: Iterable[AclRule], request: Request, *, allow_without_rules: bool = False) -> Decision:
    """Decide a request. Of several rules that would decide alike, the first in the order of their text is returned."""
    of_resource = [rule for rule in rules if covers(rule, request.resource_type, request.resource_name)]
    concerned = sorted((rule for rule in of_resource if _is_about(rule, request)), key=str)
    for permission in (AclPermission.DENY, AclPermission.ALLOW):
        for rule in concerned:
            if rule.permission is permission and _decides(rule, request.operation):
                return Decision(permission is AclPermission.ALLOW, rule, has_rules=True)
    if of_resource:
        return Decision(is_allowed=False, rule=None, has_rules=True)
    return Decision(allow_without_rules, None, has_rules=False)


def covers(rule: AclRule, resource_type: AclResourceType, name: str) -> bool:
    """Whether a rule is about a resource."""
    if rule.resource_type is not resource_type:
        return False
    if rule.pattern_type is AclPatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.pattern_type is AclPatternType.LITERAL and rule.resource_name in (name, EVERY_RESOURCE)


def _is_about(rule: AclRule, request: Request) -> bool:
    is_everybody = rule.principal == EVERYBODY and request.principal.startswith("User:")
    return (is_everybody or rule.principal == request.principal) and rule.host in (request.host, EVERY_HOST)


def _decides(rule: AclRule, operation: AclOperation) -> bool:
    if rule.operation in (operation, AclOperation.ALL):
        return True
    return rule.permission is AclPermission.ALLOW and rule.operation in IMPLIED_BY.get(operation, ())
