"""Three brokers in one process that replicate partitions, over TCP and on a metadata store that they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.topics import create_topic, delete_topic, grow_topic
from odradek.broker.replication.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.handlers.requests import batch, fetch, produce, values_in
from tests.wire import Wire


class Cluster:
    """Brokers by node id. `start` them one after the other; `stop` one, or let it fall silent with `isolate`."""

    def __init__(self, directory: Path) -> None:
        self.store = InMemoryStore()
        self.brokers: dict[int, Broker] = {}
        self._directory = directory

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
        broker = Broker(base | others, store=self.store)
        await broker.start()
        self.brokers[node_id] = broker
        return broker

    async def stop(self, node_id: int) -> None:
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


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        made = Cluster(tmp_path)
        stack.push_async_callback(made.store.close)
        for node_id in (1, 2, 3):
            await made.start(node_id)
        await made.until(lambda: all(len(each.services.metadata.image.brokers) == 3 for each in made.brokers.values()))
        yield made
        for node_id in tuple(made.brokers):
            await made.stop(node_id)


async def test_what_is_acknowledged_by_all_is_on_every_broker(cluster: Cluster) -> None:
    await cluster.create()

    for number in range(20):
        assert await cluster.produce(1, b"%d" % number) is ErrorCode.NONE

    ends = [cluster.partition(node).log.log_end_offset for node in (1, 2, 3)]  # type: ignore[union-attr]
    assert ends == [20, 20, 20]
    assert cluster.log_bytes(2) == cluster.log_bytes(3) == cluster.log_bytes(1)
    assert await cluster.produce(2, b"x") is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_that_stops_loses_nothing_and_returns_as_a_follower(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"one", b"two") is ErrorCode.NONE

    await cluster.stop(1)
    leader = await cluster.led_by_another(1)
    assert await cluster.values(leader) == [b"one", b"two"]
    assert await cluster.produce(leader, b"three") is ErrorCode.NONE
    await cluster.start(1)
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))

    assert await cluster.produce(leader, b"four") is ErrorCode.NONE
    assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)


async def test_a_leader_that_loses_its_session_cannot_acknowledge_alone(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"one") is ErrorCode.NONE
    ((kv, *_), _) = await cluster.store.range(cluster.brokers[1].services.metadata.keys.broker_id(1))

    await cluster.store.revoke(kv.lease)

    leader = await cluster.led_by_another(1)
    assert await cluster.produce(leader, b"two") is ErrorCode.NONE
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))
    assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)


async def test_too_few_in_sync_replicas_refuse_writes_to_all(cluster: Cluster) -> None:
    await cluster.create(min_insync_replicas="2")
    await cluster.stop(2)
    await cluster.stop(3)
    await cluster.until(lambda: cluster.in_sync(1))

    assert await cluster.produce(1, b"no") is ErrorCode.NOT_ENOUGH_REPLICAS
    assert await cluster.produce(1, b"yes", acks=1) is ErrorCode.NONE
    assert await cluster.values(1) == [], "it is not committed"

    await cluster.start(2)
    await cluster.until(lambda: cluster.in_sync(1, 2))
    assert await cluster.produce(1, b"more") is ErrorCode.NONE
    assert await cluster.values(1) == [b"yes", b"more"]


async def test_a_topic_that_is_deleted_and_created_again_is_another_one_everywhere(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"old") is ErrorCode.NONE
    await cluster.stop(3)
    await delete_topic(cluster.brokers[1].services.metadata, name="t")
    await cluster.until(lambda: all(cluster.partition(node) is None for node in (1, 2)))
    await create_topic(cluster.brokers[1].services.metadata, "t", assignments={0: [1, 2, 3]})
    await cluster.until(lambda: cluster.partition(1) is not None and cluster.partition(2) is not None)
    await cluster.until(lambda: cluster.leader() == 1)
    assert await cluster.produce(1, b"new") is ErrorCode.NONE

    await cluster.start(3)
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))

    assert cluster.log_bytes(3) == cluster.log_bytes(1)
    assert await cluster.values(1) == [b"new"]


async def test_a_topic_grows_while_a_replica_is_down(cluster: Cluster) -> None:
    await cluster.create()
    await cluster.stop(3)
    metadata = cluster.brokers[1].services.metadata

    await grow_topic(metadata, "t", 3)

    assert [len(each.replicas) for each in metadata.image.topics["t"].partitions] == [3, 3, 3]
    assert all(3 not in each.isr for each in metadata.image.topics["t"].partitions)
    await cluster.start(3)
    await cluster.until(
        lambda: all(len(each.isr) == 3 for each in cluster.brokers[1].services.metadata.image.topics["t"].partitions)
    )
