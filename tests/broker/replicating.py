"""Three brokers in one process that replicate partitions, over TCP and on a metadata store that they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.replication.partition import Partition
from odradek.broker.startup.machine import Machine
from odradek.client.config import Address
from odradek.client.network.transport import TcpNetwork
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.cut_off_store import CutOffStore
from tests.handlers.requests import batch, fetch, produce, values_in
from tests.wire import Wire


class Roads(TcpNetwork):
    """The ways from one broker to the others, by their ports."""

    def __init__(self) -> None:
        super().__init__()
        self._closed: set[int] = set()
        self._opened: list[tuple[int, asyncio.WriteTransport]] = []

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        if address.port in self._closed:
            raise ConnectionRefusedError("the test has closed the way")
        transport = await super().connect(address, protocol)
        self._opened.append((address.port, transport))
        return transport

    def close(self, port: int) -> None:
        """Break the connections to a broker, and refuse new ones."""
        self._closed.add(port)
        for opened, transport in self._opened:
            if opened == port:
                transport.abort()

    def open(self, port: int) -> None:
        self._closed.discard(port)


class Cluster:
    """Brokers by node id, each with an `access` of its own to the store. `start` them one after the other."""

    def __init__(self, directory: Path) -> None:
        self.store = InMemoryStore()
        self.access: dict[int, CutOffStore] = {}
        self.brokers: dict[int, Broker] = {}
        self.roads: dict[int, Roads] = {}
        self._directory = directory

    def prepare(self, broker: Broker) -> None:
        """Called with each broker before it starts."""

    async def start(self, node_id: int, **properties: str) -> Broker:
        base = {
            "node.id": str(node_id),
            "log.dirs": str(self._directory / str(node_id)),
            "replica.fetch.wait.max.ms": "50",
            "replica.fetch.backoff.ms": "50",
            "replica.lag.time.max.ms": "1000",
            "offsets.topic.num.partitions": "1",
        }
        others = {name.replace("_", "."): text for name, text in properties.items()}
        self.access[node_id] = access = CutOffStore(self.store)
        self.roads[node_id] = roads = Roads()
        broker = Broker(base | others, store=access, machine=Machine(network=roads))
        self.prepare(broker)
        await broker.start()
        self.brokers[node_id] = broker
        return broker

    async def stop(self, node_id: int) -> None:
        self.access[node_id].heal()
        await self.brokers.pop(node_id).stop()

    def partition(self, node_id: int, topic: str = "t", index: int = 0) -> Partition | None:
        found = self.brokers[node_id].services.partitions.find(topic, index)
        return None if isinstance(found, KafkaError) else found

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so in all images and logs."""
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - it may depend on any broker
                await asyncio.sleep(0.01)

    async def create(self, name: str = "t", partitions: int = 1, factor: int = 3, **configs: str) -> None:
        """Create a topic, and wait until every broker has its replicas, in sync."""
        broker = next(iter(self.brokers.values()))
        properties = {key.replace("_", "."): value for key, value in configs.items()}
        await create_topic(broker.services.metadata, name, partitions, factor, configs=properties)
        await self.until(lambda: all(self.partition(node, name) is not None for node in self.brokers))

    def leader(self, topic: str = "t", index: int = 0) -> int:
        """The leader on which all brokers agree, -1 while there is none."""
        leaders = {
            broker.services.metadata.image.topics[topic].partitions[index].leader for broker in self.brokers.values()
        }
        return leaders.pop() if len(leaders) == 1 else -1

    async def led_by_another(self, than: int, topic: str = "t") -> int:
        await self.until(lambda: self.leader(topic) not in (-1, than))
        return self.leader(topic)

    async def produce(self, node_id: int, *values: bytes, acks: int = -1) -> ErrorCode:
        async with Wire("127.0.0.1", self.brokers[node_id].port) as wire:
            return ErrorCode((await produce(wire, "t", batch(*values), acks=acks)).error_code)

    async def values(self, node_id: int) -> list[bytes | None]:
        async with Wire("127.0.0.1", self.brokers[node_id].port) as wire:
            return values_in(await fetch(wire, "t"))

    def log_bytes(self, node_id: int) -> bytes:
        partition = self.partition(node_id)
        assert partition is not None
        return b"".join(Path(segment.log.path).read_bytes()[: segment.size] for segment in partition.log.segments)

    def in_sync(self, *node_ids: int) -> bool:
        """Whether all brokers see exactly these replicas in sync."""
        return all(
            sorted(broker.services.metadata.image.topics["t"].partitions[0].isr) == sorted(node_ids)
            for broker in self.brokers.values()
        )


C = TypeVar("C", bound=Cluster)


@asynccontextmanager
async def three_brokers(directory: Path, kind: type[C] = Cluster, **properties: str) -> AsyncIterator[C]:  # type: ignore[assignment]
    """Start brokers 1, 2 and 3, which stop in the end."""
    made = kind(directory)
    try:
        for node_id in (1, 2, 3):
            await made.start(node_id, **properties)
        await made.until(lambda: all(len(each.services.metadata.image.brokers) == 3 for each in made.brokers.values()))
        yield made
    finally:
        for access in made.access.values():
            access.heal()
        for node_id in tuple(made.brokers):
            await made.stop(node_id)
        await made.store.close()
