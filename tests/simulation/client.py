"""A client of the simulated cluster: the bundled client's connections, and the requests of the workload over them.

It asks a broker for metadata, goes to the leader with the epoch that it knows, and asks again after each error. An
attempt ends with an answer, or with None if the outcome is unknown.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from odradek.client.config import Address
from odradek.client.errors import ClientError
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.schema import Message
from tests.simulation.hosts import Host
from tests.simulation.streams import SimulatedNetwork

R = TypeVar("R", bound=Message)

PORT = 9092
_CONNECT_SECONDS = 1.0
_REQUEST_SECONDS = 2.0


class Leader:
    """The place of a partition, as metadata have it."""

    def __init__(self, node_id: int, epoch: int) -> None:
        self.node_id = node_id
        self.epoch = epoch


class Client:
    """One client, with connections of its own. Only one request at a time."""

    def __init__(self, name: str, host: Host, network: SimulatedNetwork, node_ids: list[int]) -> None:
        self.name = name
        self.draw = host.world.draw
        self._network = network
        self._node_ids = node_ids
        self._connections: dict[int, Connection] = {}
        self._leaders: dict[tuple[bytes, int], Leader] = {}
        self._epochs: dict[tuple[bytes, int], int] = {}  # the highest that it has seen

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(asyncio.get_running_loop().time() * 1000)

    async def pause(self, most: float) -> None:
        await asyncio.sleep(self.draw.uniform(0, most))

    async def ask(self, node_id: int, request: Message, response: type[R], version: int | None = None) -> R | None:
        """Send a request to a broker; return None if it did not answer."""
        try:
            connection = await self._connection(node_id)
            return await connection.send(request, response, version=version)
        except ClientError:
            connection_ = self._connections.pop(node_id, None)
            if connection_ is not None:
                connection_.close()
            return None

    def any_node(self) -> int:
        return self.draw.choice(self._node_ids)

    async def leader(self, topic_id: bytes, partition: int) -> Leader | None:
        """Return the leader of a partition, None if there is none now, or the topic is unknown."""
        known = self._leaders.get((topic_id, partition))
        if known is not None:
            return known
        request = MetadataRequest([MetadataRequestTopic(topic_id, None)], allow_auto_topic_creation=False)
        found = await self.ask(self.any_node(), request, MetadataResponse, version=12)
        for topic in () if found is None else found.topics:
            for row in topic.partitions:
                key = (topic.topic_id, row.partition_index)
                if row.leader_id >= 0 and row.leader_epoch >= self._epochs.get(key, 0):
                    self._epochs[key] = row.leader_epoch
                    self._leaders[key] = Leader(row.leader_id, row.leader_epoch)
        return self._leaders.get((topic_id, partition))

    def forget_leader(self, topic_id: bytes, partition: int) -> None:
        """Ask for the leader again before the next request."""
        self._leaders.pop((topic_id, partition), None)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _connection(self, node_id: int) -> Connection:
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_open:
            connection = await open_connection(
                self._network,
                Address(f"node-{node_id}", PORT),
                f"broker {node_id}",
                client_id=self.name,
                connect_timeout=_CONNECT_SECONDS,
                request_timeout=_REQUEST_SECONDS,
            )
            self._connections[node_id] = connection
        return connection


def only(rows: list[Any]) -> Any:
    """Return the single row of an answer to a request for one thing."""
    [row] = rows
    return row
