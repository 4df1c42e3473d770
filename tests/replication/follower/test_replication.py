"""A follower of a real broker: its handler of Fetch, over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.metadata.image import PartitionImage
from odradek.broker.metrics.counts.metrics import Metrics, TopicMetrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.follower.fetchers import Fetchers
from odradek.broker.replication.follower.settings import FollowerSettings
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.record_deletion import delete_records
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.handlers.cluster import OTHER, OTHER_BROKER, SELF, publish
from tests.handlers.requests import batch, create, produce
from tests.replication.follower.following import NoEvents
from tests.storage.logs import append
from tests.wire import Wire

BOTH = {SELF: 1000, OTHER: 9}


class WireConnection:
    def __init__(self, port: int) -> None:
        self._wire = Wire("127.0.0.1", port)
        self._is_open = False

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        if not self._is_open:
            await self._wire.__aenter__()
            self._is_open = True
        response: FetchResponse = await self._wire.ask(request, 18)
        return response

    def close(self) -> None:
        if self._is_open:
            self._wire.writer.close()


class Follower:
    """The replica of broker OTHER."""

    def __init__(self, port: int, log_dir: LogDir, threads: DiskThreads) -> None:
        self.tasks = BackgroundTasks(lambda _, error: self.errors.append(error))
        self.errors: list[BaseException] = []
        self.log_dir = log_dir
        self.threads = threads
        self.fetchers = Fetchers(
            lambda: FollowerSettings(replica_fetch_max_bytes=200),
            lambda _: WireConnection(port),
            node_id=OTHER,
            broker_epoch=lambda: OTHER_BROKER.epoch,
            clock=SystemClock(),
            tasks=self.tasks,
            metrics=Metrics(),
        )

    def follow(self, leading: Partition) -> Partition:
        log = self.log_dir.create_log(leading.topic, 0, leading.topic_id, LogConfig())
        partition = Partition(
            leading.topic,
            leading.topic_id,
            0,
            log,
            node_id=OTHER,
            metrics=TopicMetrics(),
            threads=self.threads,
            followers=Followers(OTHER, SystemClock(), {}.get),
            events=NoEvents(),
        )
        self.update(partition, leading)
        return partition

    def update(self, partition: Partition, leading: Partition) -> None:
        image = leading.image
        assert isinstance(image, PartitionImage)
        if partition.apply(image):
            self.fetchers.update(partition)


@pytest.fixture
async def follower(broker: Broker, log_dir: LogDir, threads: DiskThreads) -> AsyncIterator[Follower]:
    made = Follower(broker.port, log_dir, threads)
    yield made
    await made.tasks.stop()
    assert not made.errors


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a turn of the loop, not a pause
            await asyncio.sleep(0)


def stored(partition: Partition) -> bytes:
    log = partition.log
    return log.bytes_of(log.read(log.log_start_offset, 1 << 30, log.log_end_offset))


async def test_a_follower_replicates_byte_for_byte_and_commits(broker: Broker, wire: Wire, follower: Follower) -> None:
    await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    leading = broker.services.partitions.get("t", 0)
    following = follower.follow(leading)

    for value in (b"a", b"b" * 100_000, b"c"):  # the second is larger than replica.fetch.max.bytes
        row = await produce(wire, "t", batch(value), acks=-1)
        assert row.error_code == 0

    await until(lambda: following.high_watermark == 3)
    assert stored(following) == stored(leading)
    assert leading.high_watermark == 3


async def test_a_follower_with_records_of_a_deposed_leader_drops_them(
    broker: Broker, wire: Wire, follower: Follower
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    publish(broker, "t", isr=BOTH, leader=SELF)  # epoch 1
    publish(broker, "t", isr=BOTH, leader=SELF)  # epoch 2, without a batch
    leading = broker.services.partitions.get("t", 0)
    log = follower.log_dir.create_log("t", 0, leading.topic_id, LogConfig())
    log.append_as_follower(bytearray(stored(leading)))
    append(log, b"never acknowledged", leader_epoch=1)

    following = follower.follow(leading)

    await until(lambda: following.log.log_end_offset == 1 and stored(following) == stored(leading))
    assert (await produce(wire, "t", batch(b"b"), acks=-1)).error_code == 0
    await until(lambda: stored(following) == stored(leading))


async def test_a_follower_below_the_start_of_the_leader_begins_there(
    broker: Broker, wire: Wire, follower: Follower
) -> None:
    await create(wire, "t")
    for value in (b"a", b"b", b"c"):
        await produce(wire, "t", batch(value))
    publish(broker, "t", isr={SELF: 1000})
    leading = broker.services.partitions.get("t", 0)
    await delete_records(leading, 2)

    following = follower.follow(leading)

    await until(lambda: following.log.log_end_offset == 3)
    assert following.log.log_start_offset == 2
    assert stored(following) == stored(leading)
    await delete_records(leading, 3)
    assert (await produce(wire, "t", batch(b"d"))).error_code == 0
    await until(lambda: following.log.log_start_offset == 3)
