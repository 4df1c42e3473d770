"""The decision whether a principal may perform an operation on a resource."""

from __future__ import annotations

from typing import Protocol

from odradek.broker.security.access.resources import Operation, ResourceType
from odradek.broker.security.principal import Principal


class Authorizer(Protocol):
    """Decides by the rules that hold now."""

    @property
    def version(self) -> int:
        """A number that changes with the rules: a decision holds as long as it is the same."""
        ...

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return whether the principal, connected from the address `host`, may do that to the resource `name`."""
        ...

    def allows_on_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether there is a resource of this type on which it may (`authorizeByResourceType` in Kafka)."""
        ...
