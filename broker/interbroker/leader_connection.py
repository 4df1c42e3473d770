"""The connection of one fetcher to one leader, over TCP: `replication.follower.leader_connection` is the seam."""

from __future__ import annotations

from typing import Final

from odradek.broker.interbroker.connections import BrokerConnections
from odradek.client.errors import ClientError
from odradek.protocol.api import FETCH_KEY
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse

FIRST_VERSION: Final = 15
"""The first version of Fetch with the follower's broker epoch (KIP-903), without which a leader counts no fetch."""


class TcpLeaderConnection:
    """A `LeaderConnection`, opened with the first request and again after an error."""

    def __init__(self, connections: BrokerConnections, leader: int, purpose: str) -> None:
        self._connections = connections
        self._leader = leader
        self._purpose = purpose

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Send a Fetch with the highest version that both brokers have, at least 15, and return the response.

        Raises OSError if there is none; the leader may have received the request.
        """
        try:
            connection = await self._connections.connection(self._leader, self._purpose)
            version = connection.versions.highest(FETCH_KEY)
            if version < FIRST_VERSION:
                raise OSError(f"broker {self._leader} has no Fetch {FIRST_VERSION}, only {version}")
            return await connection.send(request, FetchResponse, version=version)
        except (ClientError, KafkaError) as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        """End the connection."""
        self._connections.drop(self._leader, self._purpose)
