"""A partition with three replicas that a test leads, and the brokers that are registered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.values import RUNNING
from odradek.broker.metrics.counts.metrics import TopicMetrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.fencing import Fencing
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from tests.storage.logs import NOW, TOPIC_ID, batch

SELF, OTHER, THIRD = 1, 2, 3
EPOCHS = {SELF: 11, OTHER: 12, THIRD: 13}
LAG = 30.0


class Leading:
    """A partition with three replicas, and the brokers that are registered."""

    def __init__(
        self,
        log_dir: LogDir,
        threads: DiskThreads,
        clock: ManualClock | None = None,
        fencing: Fencing | None = None,
        **properties: Any,
    ) -> None:
        self.clock = clock or ManualClock()
        self.brokers = {node: broker(node) for node in EPOCHS}
        self.appends = 0
        self.joinable: list[int] = []
        self.partition = Partition(
            "t",
            TOPIC_ID,
            0,
            log_dir.create_log("t", 0, TOPIC_ID, LogConfig(**properties)),
            node_id=SELF,
            metrics=TopicMetrics(),
            threads=threads,
            followers=Followers(SELF, self.clock, self.brokers.get, LAG),
            events=self,
            fencing=fencing,
        )
        self._partition_epoch = -1

    def advanced(self, partition: Partition) -> None:
        pass

    def appended(self, partition: Partition) -> None:
        assert partition is self.partition
        self.appends += 1

    def followed(self, partition: Partition) -> None:
        pass

    def may_join(self, partition: Partition, replica: int) -> None:
        assert partition is self.partition
        self.joinable.append(replica)

    def apply(self, *isr: int, leader: int = SELF, epoch: int = 0, eligible: Sequence[int] = ()) -> bool:
        self._partition_epoch += 1
        members = {node: EPOCHS[node] for node in isr or (SELF, OTHER, THIRD)}
        elr = {node: EPOCHS[node] for node in eligible}
        return self.partition.apply(PartitionImage(leader, epoch, list(EPOCHS), members, self._partition_epoch, elr))

    def fetched(self, replica: int, offset: int, *, broker_epoch: int | None = None, epoch: int = 0) -> int:
        """Record a follower's fetch; return the high watermark after it."""
        of_broker = EPOCHS[replica] if broker_epoch is None else broker_epoch
        self.partition.record_follower_fetch(replica, of_broker, epoch, offset, 0)
        self.partition.followers.record_answer(replica, of_broker)
        return self.partition.high_watermark

    def append(self, *values: bytes) -> None:
        assert isinstance(self.partition.append_as_leader(batch(*values), 1, NOW), AppendInfo)


def broker(node: int, epoch: int | None = None, state: str = RUNNING) -> BrokerImage:
    return BrokerImage(node, EPOCHS[node] if epoch is None else epoch, [], None, state, "x", 0)
