"""Requests to a coordinator: the broker of a group or of a transactional id, found at the first request.

It is found again after it has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
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
"""Errors of a broker that does not coordinate the group or transactional id."""

_FIND_COORDINATOR_KEY = 10


class KeyType(IntEnum):
    """The type of a coordinator's key."""

    GROUP = 0
    TRANSACTIONAL_ID = 1

    @property
    def words(self) -> str:
        """The type in messages."""
        return self.name.lower().replace("_", " ")


async def find_coordinators(
    connection: Connection, keys: Sequence[str], key_type: KeyType = KeyType.GROUP
) -> list[Found]:
    """Request the coordinators of keys; each row has an error code of its own. Raises ClientError."""
    version = connection.versions.highest(_FIND_COORDINATOR_KEY, at_least=FIRST_VERSION_WITH_SEVERAL_KEYS)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    return (await connection.send(request, FindCoordinatorResponse, version=version)).coordinators


class Coordinator:
    """Sends requests to the coordinator of one group or transactional id, its `key`.

    JoinGroup waits at the broker for all members, so its purpose is a connection of its own (`Purpose.GROUP`).
    """

    def __init__(self, cluster: Cluster, key: str, key_type: KeyType = KeyType.GROUP) -> None:
        self.key = key
        self._key_type = key_type
        self._cluster = cluster
        self._node_id: int | None = None

    async def connection(self, purpose: Purpose = Purpose.REQUESTS) -> Connection:
        """The connection to the coordinator, found and opened if necessary. Raises ClientError."""
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
        connection = await self.connection(purpose)
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
        for found in await find_coordinators(connection, [self.key], self._key_type):
            if found.error_code:
                tried = f"find the coordinator of {self._key_type.words} {self.key}"
                raise broker_error(found.error_code, tried, found.error_message, broker=connection.name)
            return found.node_id
        raise ClientError("find a coordinator", "the response contains none", broker=connection.name)
