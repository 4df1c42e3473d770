"""A follower's side of a test: its partition, and rows as leaders send them."""

from __future__ import annotations

import asyncio
from typing import Any

from odradek.broker.metadata.image import PartitionImage
from odradek.broker.metadata.values import PartitionState, encode
from odradek.broker.metrics.counts.metrics import TopicMetrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.replication.leading import OTHER, SELF, THIRD
from tests.storage.logs import TOPIC_ID, follower_batch


class NoEvents:
    def advanced(self, partition: Partition) -> None:
        pass

    appended = followed = advanced

    def may_join(self, partition: Partition, replica: int) -> None:
        pass


class LoopClock(ManualClock):
    """The time of the event loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def follower_of(
    log_dir: LogDir, threads: DiskThreads, name: str = "t", topic_id: bytes = TOPIC_ID, **properties: Any
) -> Partition:
    """A partition that follows OTHER in epoch 1."""
    log = log_dir.create_log(name, 0, topic_id, LogConfig(**properties))
    partition = Partition(
        name,
        topic_id,
        0,
        log,
        node_id=SELF,
        metrics=TopicMetrics(),
        threads=threads,
        followers=Followers(SELF, ManualClock(), {}.get),
        events=NoEvents(),
    )
    partition.configure(log.config)
    lead(partition, OTHER, 1)
    return partition


def lead(partition: Partition, leader: int, epoch: int, *, rec: int = 0) -> None:
    """Apply an image in which `leader` leads."""
    isr = {SELF: 11, OTHER: 12, THIRD: 13}
    value = encode(PartitionState(leader, epoch, isr, epoch, rec=rec))
    partition.apply(PartitionImage(leader, epoch, list(isr), isr, epoch, state_value=value))


def records(*values: bytes, base_offset: int, epoch: int = 1, **fields: Any) -> bytes:
    return follower_batch(*values, base_offset=base_offset, leader_epoch=epoch, **fields)


def row(*batches: bytes, high_watermark: int = 0, log_start_offset: int = 0, **fields: Any) -> PartitionData:
    return PartitionData(
        0,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=memoryview(b"".join(batches)),
        **fields,
    )


def diverging(epoch: int, end_offset: int) -> PartitionData:
    return row(diverging_epoch=EpochEndOffset(epoch, end_offset))
