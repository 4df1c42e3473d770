"""Requests to the broker that coordinates a group, which is found at the first request and after it has moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from odradek.client.errors import ClientError, TransportError, broker_error
from odradek.client.network.cluster import Cluster
from odradek.client.network.connection import Connection
from odradek.client.network.connections import Purpose
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FIRST_VERSION_WITH_SEVERAL_KEYS,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.find_coordinator import Coordinator as Found
from odradek.protocol.schema import Message

R = TypeVar("R", bound=Message)

NOT_THE_COORDINATOR = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Errors of a broker that does not coordinate the group."""

_FIND_COORDINATOR_KEY = 10


async def find_coordinators(connection: Connection, groups: Sequence[str]) -> list[Found]:
    """Request the coordinators of groups; each row has an error code of its own. Raises ClientError."""
    version = connection.versions.highest(_FIND_COORDINATOR_KEY, at_least=FIRST_VERSION_WITH_SEVERAL_KEYS)
    request = FindCoordinatorRequest(coordinator_keys=list(groups))
    return (await connection.send(request, FindCoordinatorResponse, version=version)).coordinators


class Coordinator:
    """Sends requests to the coordinator of one group.

    JoinGroup waits at the broker for all members, so its purpose is a connection of its own (`Purpose.GROUP`).
    """

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self.group_id = group_id
        self._cluster = cluster
        self._node_id: int | None = None

    async def _connection(self, purpose: Purpose) -> Connection:
        if self._node_id is None:
            self._node_id = await self._find()
        try:
            return await self._cluster.connection(self._node_id, purpose)
        except TransportError:
            self.forget_coordinator()
            raise

    async def send(
        self,
        request: Message,
        response: type[R],
        *,
        at_most: int | None = None,
        timeout_s: float | None = None,
        purpose: Purpose = Purpose.REQUESTS,
    ) -> tuple[R, str]:
        """Send a request and return the response and the broker's name for errors. Raises ClientError.

        `at_most` bounds its version; `timeout_s` is how long to wait in seconds, by default `request_timeout_ms`.
        """
        connection = await self._connection(purpose)
        version = None if at_most is None else connection.version_of(request, at_most)
        try:
            return await connection.send(request, response, version=version, timeout=timeout_s), connection.name
        except TransportError:
            self.forget_coordinator()
            raise

    def forget_coordinator(self) -> None:
        """Find the coordinator again before the next request."""
        self._node_id = None

    async def _find(self) -> int:
        connection = await self._cluster.any_connection()
        for found in await find_coordinators(connection, [self.group_id]):
            if found.error_code:
                tried = f"find the coordinator of group {self.group_id}"
                raise broker_error(found.error_code, tried, found.error_message, broker=connection.name)
            return found.node_id
        raise ClientError("find a coordinator", "the response contains none", broker=connection.name)
