"""The authorizer: decides by access rules, as Kafka's `StandardAuthorizer`.

```
a super user                              allowed
a rule denies it to the client            denied
a rule allows it to the client            allowed
no rule is for the resource               as `allow.everyone.if.no.acl.found` says
rules are for the resource, none for it   denied
```

A rule is for the client if its principal is the client's or `User:*`, and its host the client's or `*`. ALLOW of Read,
Write, Delete and Alter includes Describe; ALLOW of AlterConfigs includes DescribeConfigs; All includes everything. DENY
of an operation includes no other; DENY of All includes all.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.security.access.authorizer import Decision, Reason
from odradek.broker.security.access.rule import AccessRule
from odradek.broker.security.access.rule_set import RuleSet
from odradek.broker.security.principal import EVERYBODY, Principal
from odradek.protocol.access_rules import Operation, PermissionType, ResourceType, spellings_of_host

_EVERYBODY = str(EVERYBODY)
_MOST_CACHED = 10_000


_SUPER_USER = Decision(True, None, Reason.SUPER_USER)
_NO_RULE_ALLOWS = Decision(False, None, Reason.NO_RULE_ALLOWS)


class StandardAuthorizer:
    """Decides by the rules that it was given; `apply` changes them. All methods belong to the event loop's thread."""

    def __init__(
        self, super_users: Iterable[Principal] = (), rules: Iterable[AccessRule] = (), *, allow_everyone: bool = False
    ) -> None:
        """`allow_everyone`: a resource without rules is open to everybody."""
        self._super_users = frozenset(super_users)
        self._no_rule_for_resource = Decision(allow_everyone, None, Reason.NO_RULE_FOR_RESOURCE)
        self._rules = RuleSet()
        self._on_any: dict[tuple[Principal, str, Operation, ResourceType], bool] = {}
        self.version = 0
        self.apply((), rules)

    @property
    def rule_count(self) -> int:
        return len(self._rules)

    def apply(self, removed: Iterable[AccessRule], added: Iterable[AccessRule]) -> None:
        """Change the rules. Earlier decisions are no longer valid."""
        for rule in removed:
            self._rules.remove(rule)
        for rule in added:
            self._rules.add(rule)
        self._on_any.clear()
        self.version += 1

    def decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Return the decision, with its reason. `host` is the client's address."""
        if principal in self._super_users:
            return _SUPER_USER
        verdict = self._rules.find(
            (str(principal), _EVERYBODY), spellings_of_host(host), operation, resource_type, name
        )
        if verdict.rule is not None:
            return Decision(verdict.rule.permission is PermissionType.ALLOW, verdict.rule, Reason.RULE)
        return _NO_RULE_ALLOWS if verdict.has_rules else self._no_rule_for_resource

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return whether the principal, connected from the address `host`, may do that to the resource `name`."""
        return self.decide(principal, host, operation, resource_type, name).allowed

    def allows_on_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether there is a resource of this type on which it may.

        Takes a step for each rule of the principal and of `User:*`. The answer is kept until the rules change.
        """
        question = principal, host, operation, resource_type
        found = self._on_any.get(question)
        if found is None:
            if len(self._on_any) >= _MOST_CACHED:
                self._on_any.clear()
            found = self._on_any[question] = self._find_on_any(*question)
        return found

    def _find_on_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        if principal in self._super_users:
            return True
        if self._no_rule_for_resource.allowed and not self._rules.has_rules_for_every(resource_type):
            return True  # on a resource without rules; there is always one
        principals = str(principal), _EVERYBODY
        return self._rules.allows_on_any(principals, spellings_of_host(host), operation, resource_type)
