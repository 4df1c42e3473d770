"""The decision whether a principal may perform an operation on a resource."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from odradek.broker.security.access.rule import AccessRule
from odradek.broker.security.principal import Principal
from odradek.protocol.access_rules import Operation, ResourceType


class Reason(Enum):
    """The reason of a decision, as the end of a sentence for logs and commands."""

    SUPER_USER = "the principal is a super user"
    RULE = "a rule says so"
    NO_RULE_FOR_RESOURCE = "no rule is for the resource"
    NO_RULE_ALLOWS = "no rule allows it"


class Decision(NamedTuple):
    """Whether something is allowed; `rule` is the one that decided, None if it was none."""

    allowed: bool
    rule: AccessRule | None
    reason: Reason


class Authorizer(Protocol):
    """Decides by the rules that hold now."""

    @property
    def version(self) -> int:
        """A number that changes with the rules: a decision holds as long as it is the same."""
        ...

    def decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Return whether the principal, connected from the address `host`, may do that to the resource `name`."""
        ...

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return what `decide` returns, without its reason."""
        ...

    def allows_on_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether it may on some resource of this type (`authorizeByResourceType` in Kafka)."""
        ...
