"""A transient error of the disk in a transition of a partition: afterwards the partition works, without a restart.

The n-th operation on files fails once, for every n in turn.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import ImageChange, MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.values import DeletedTopic
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.effort import cases
from tests.storage.logs import NOW, batch, follower_batch, open_log_dir, values_of
from tests.storage.test_transient_errors import ShortFiles

SELF, OTHER = 1, 2
OLD_ID, NEW_ID = bytes([1] * 16), bytes([2] * 16)
CONFIGS = {"flush.messages": "1", "segment.bytes": "1048576", "index.interval.bytes": "0"}
EVERY = max(1, 175 // cases(25))  # every seventh by default


class Replicas:
    """Partition t-0 of a broker, in a log directory whose files fail on demand."""

    def __init__(self, path: Path, threads: DiskThreads, files: ShortFiles) -> None:
        self.failures: list[BaseException] = []
        self.tasks = BackgroundTasks(lambda _, error: self.failures.append(error))
        self.log_dir = open_log_dir(path, LogConfig(), files=files, max_open_files=1)  # every use of a file opens it
        self.log_dirs = LogDirs([self.log_dir])
        self.epoch = -1
        self.deleted: dict[bytes, DeletedTopic] = {}
        loop = asyncio.get_running_loop()
        self.partitions = Partitions(
            node_id=SELF,
            log_dirs=self.log_dirs,
            config=CurrentConfig(BrokerConfig.load()),
            purgatories=[Purgatory("Fetch", loop, loop)],
            deletions=Purgatory("DeleteRecords", loop, loop),
            threads=threads,
            tasks=self.tasks,
            metrics=Metrics(),
            clock=SystemClock(),
        )

    async def lead(self, leader: int, topic_id: bytes = OLD_ID) -> Partition:
        """Apply an image with the next leader epoch; return the partition when there is one of that topic."""
        self.epoch += 1
        state = PartitionImage(leader, self.epoch, [SELF, OTHER], {SELF: 1, OTHER: 1}, self.epoch)
        self._apply(TopicImage("t", topic_id, [state], CONFIGS))
        await until(lambda: not isinstance(self.partitions.find_by_id(topic_id, 0), Exception))
        return self.partitions.get("t", 0)

    async def delete(self) -> None:
        self._apply()
        await until(lambda: not self.log_dir.logs)

    def _apply(self, *topics: TopicImage) -> None:
        before = self.partitions.image
        by_id = {each.topic_id: each for each in topics}
        self.deleted |= {each: DeletedTopic("t", 0) for each in before.topics_by_id if each not in by_id}
        after = MetadataImage(
            topics={each.name: each for each in topics}, topics_by_id=by_id, deleted=dict(self.deleted)
        )
        self.partitions.apply(ImageChange(before, after, dict.fromkeys((*before.topics_by_id, *by_id))))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - it depends on threads and retries
            await asyncio.sleep(0.005)


async def again(work: Callable[[], Awaitable[object] | object]) -> None:
    """Do as clients and fetchers do after an error that may be retried."""
    while True:
        try:
            result = work()
            if isinstance(result, Awaitable):
                await result
        except TransientDiskError:
            continue
        return


@asynccontextmanager
async def replicas(path: Path, threads: DiskThreads, files: ShortFiles) -> AsyncIterator[Replicas]:
    made = Replicas(path, threads, files)
    yield made
    await made.partitions.settled()
    await made.tasks.stop()
    assert made.failures == []
    assert made.log_dir.failure.error is None
    files.fail(0)
    made.log_dir.close()


async def lead(partition: Partition, start: int, *values: bytes) -> None:
    """Wait until the leader epoch has begun, and append."""
    await until(lambda: partition.epoch_start_offset >= 0)
    assert partition.epoch_start_offset == start
    for value in values:
        await again(lambda v=value: partition.append_as_leader(batch(v), 1, NOW))
        assert partition.log.recovery_point == partition.log.log_end_offset, "it counts before it is synced"


async def follow(partition: Partition, truncate_to: int, *values: bytes) -> None:
    """Truncate, and append the leader's batches, by responses such as a leader sends."""
    replica = FollowedReplica(partition, 1 << 20)
    await again(replica.prepare)
    log = partition.log

    async def handle(row: PartitionData) -> None:
        await replica.handle(replica.wanted(), row)

    diverging = EpochEndOffset(epoch=replica.leader_epoch - 1, end_offset=truncate_to)
    partition.high_watermark = min(partition.high_watermark, truncate_to)
    while log.log_end_offset > truncate_to:
        with suppress(TransientDiskError):
            await handle(PartitionData(0, 0, -1, diverging_epoch=diverging, records=b""))
        if not replica.is_prepared:
            await again(replica.prepare)
    for value in values:
        end = log.log_end_offset
        records = follower_batch(value, base_offset=end, leader_epoch=replica.leader_epoch)
        while log.log_end_offset == end:
            with suppress(TransientDiskError):
                await handle(PartitionData(0, 0, -1, records=records))
            if not replica.is_prepared:
                await again(replica.prepare)
        assert log.recovery_point == log.log_end_offset, "the next fetch promises what is not synced"


async def transitions(path: Path, threads: DiskThreads, files: ShortFiles, nth: int) -> int:
    """Go through all transitions while the n-th operation fails; return the number of operations."""
    async with replicas(path, threads, ShortFiles()) as before:
        await lead(await before.lead(SELF), 0, b"a", b"b")
    async with replicas(path, threads, files) as made:
        made.epoch = before.epoch
        files.fail(nth)
        partition = await made.lead(SELF)
        await lead(partition, 2, b"c")
        await again(partition.roll)
        await lead(partition, 2, b"d")
        await made.lead(OTHER)
        await follow(partition, 3, b"e", b"f")
        await made.lead(SELF)
        await lead(partition, 5, b"g")
        check(partition.log, [b"a", b"b", b"c", b"e", b"f", b"g"], [(0, 0), (1, 2), (2, 3), (3, 5)])
        await made.delete()
        partition = await made.lead(SELF, NEW_ID)
        await lead(partition, 0, b"new")
        check(partition.log, [b"new"], [(4, 0)])
        operations = files.operations
    opened = open_log_dir(path, LogConfig())
    check(opened.logs["t", 0], [b"new"], [(4, 0)])
    opened.close()
    return operations


def check(log: Log, values: list[bytes], epochs: list[tuple[int, int]]) -> None:
    for _ in range(2):
        try:
            assert values_of(log) == values
        except (OSError, TransientDiskError):
            continue
        break
    assert log.log_end_offset == len(values)
    assert [tuple(entry) for entry in log.leader_epochs] == epochs


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM], ids=["EMFILE", "ENOMEM"])
async def test_a_partition_works_after_a_transient_error_in_any_transition(
    tmp_path: Path, threads: DiskThreads, code: int
) -> None:
    total = await transitions(tmp_path / "counted", threads, ShortFiles(code), 0)
    assert total > 50
    for nth in range(1 + (code == errno.EMFILE) * EVERY // 2, total + 1, EVERY):
        await transitions(tmp_path / f"{nth}", threads, ShortFiles(code), nth)


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "set aside"])
async def test_a_creation_is_retried_whose_removal_of_an_older_log_fails(
    tmp_path: Path, threads: DiskThreads, is_deleted: bool
) -> None:
    for nth in range(1, 30):
        files = ShortFiles()
        async with replicas(tmp_path / f"{nth}", threads, files) as made:
            old = made.log_dirs.create_log("t", 0, OLD_ID, LogConfig())
            old.append_as_leader(batch(b"old"), 0, NOW)
            made.deleted = {OLD_ID: DeletedTopic("t", 0)} if is_deleted else {}
            files.fail(nth)
            partition = await made.lead(SELF, NEW_ID)
            await lead(partition, 0, b"new")
            is_over = files.operations < nth
            check(partition.log, [b"new"], [(0, 0)])
        if is_over:
            assert nth > 5
            return
    pytest.fail("it needs more operations")
