"""One partition that follows a leader, in one leader epoch: what each row of a response does to its log.

| row | what happens |
|---|---|
| records | appended with the leader's offsets, epochs and bytes; synced first if flush.messages demands it |
| diverging epoch | truncated to the point of divergence (`truncation`), never by the high watermark |
| OFFSET_OUT_OF_RANGE below the leader's start | all records are deleted, and the log begins anew at that start |
| OFFSET_OUT_OF_RANGE above the leader's end | truncated to that end |
| any other error, a corrupt batch | fetched again after a pause; other partitions go on |

The high watermark and the start of the log follow the leader's. A truncation below the own high watermark would delete
records that were acknowledged, so it stops this replica, with an error in the log and a count. Only after an unclean
election, which may lose such records, is it done.

A row is discarded if the leader or its epoch has changed since the request: another leader may be followed already.
"""

from __future__ import annotations

from odradek.broker.metadata.values import decode_partition_state
from odradek.broker.replication.follower.truncation import truncation_offset
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchPartition, PartitionData

_LOG = StructuredLogger(__name__)


class FollowedReplica:
    """A replica while it follows in one leader epoch. `retry_at` is the earliest time of its next fetch.

    It is fetched while it `is_prepared`; see `prepare`.

    `is_stopped`: it is not fetched any more in this epoch. `lag` is the number of committed records that it lacks.
    """

    def __init__(self, partition: Partition, max_bytes: int) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.retry_at = 0.0
        self.is_prepared = False
        self.is_stopped = False
        self.lag = 0
        self._leader = partition.leader
        self._max_bytes = max_bytes

    @property
    def is_current(self) -> bool:
        """Whether the partition still follows the same leader in the same epoch."""
        partition = self.partition
        return partition.leader_epoch == self.leader_epoch and partition.leader == self._leader

    async def prepare(self) -> None:
        """Wait for the work of earlier epochs, so that the first fetch offset is a promise that holds.

        Raises KafkaError.
        """
        partition = self.partition
        await partition.appender.drained()
        if not partition.log.end_is_checked:
            await partition.appender.run_between_appends(partition.log.check_end)
        await partition.appender.sync_if_demanded()
        self.is_prepared = True

    def wanted(self) -> FetchPartition:
        """The part of the next request for this partition."""
        log = self.partition.log
        end = log.log_end_offset
        return FetchPartition(
            self.partition.index,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=end,
            last_fetched_epoch=log.epoch_for_offset(end - 1) if end > log.log_start_offset else -1,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self._max_bytes,
        )

    async def handle(self, requested: FetchPartition, row: PartitionData) -> int:
        """Apply a row of the response to a request; return the bytes appended. Raises KafkaError to try again later.

        After a transient error of the disk it is not prepared any more: what was appended may not be synced, and the
        log may be half truncated.
        """
        try:
            return await self._handle(requested, row)
        except TransientDiskError:
            self.is_prepared = False
            raise

    async def _handle(self, requested: FetchPartition, row: PartitionData) -> int:
        log = self.partition.log
        if not self.is_current or self.is_stopped or requested.fetch_offset != log.log_end_offset:
            return 0
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._move_into_range(row.log_start_offset, row.diverging_epoch.end_offset)
            return 0
        if row.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(row.error_code), f"the leader of {self.partition} refused the fetch")
        if row.diverging_epoch.epoch >= 0:
            await self._truncate(
                truncation_offset(log, row.diverging_epoch.epoch, row.diverging_epoch.end_offset),
            )
            return 0
        size = await self._append(memoryview(row.records)) if row.records else 0
        if self.is_current:
            await self._follow(row.high_watermark, row.log_start_offset)
        return size

    async def _append(self, records: memoryview) -> int:
        info = await self.partition.appender.append_as_follower(records, self.leader_epoch)
        if info is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the leader of {self.partition} sent no whole batch")
        return info.size_bytes

    async def _follow(self, high_watermark: int, log_start_offset: int) -> None:
        partition = self.partition
        partition.follow_high_watermark(high_watermark)
        self.lag = max(0, high_watermark - partition.log.log_end_offset)
        start = min(log_start_offset, partition.high_watermark)
        if start > partition.log.log_start_offset:
            await partition.appender.run_between_appends(partition.log.update_log_start_offset, start)

    async def _move_into_range(self, leader_start: int, leader_end: int) -> None:
        log = self.partition.log
        if 0 <= leader_end < log.log_end_offset:
            await self._truncate(leader_end)
        elif leader_start > log.log_end_offset:
            _LOG.warning("log begun anew", partition=str(self.partition), end=log.log_end_offset, start=leader_start)
            await self.partition.appender.run_between_appends(log.truncate_fully_and_start_at, leader_start)
            self.partition.follow_high_watermark(leader_start)
        else:
            bounds = f"{leader_start} to {leader_end}"
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"the leader of {self.partition} has {bounds}, this log ends inside"
            )

    async def _truncate(self, offset: int) -> None:
        partition = self.partition
        log = partition.log
        if offset < partition.high_watermark and not self._was_elected_uncleanly():
            self.is_stopped = True
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{partition} would have to be truncated to {offset}, below its high watermark "
                f"{partition.high_watermark}: it is not replicated until another leader is elected",
            )
        if offset >= log.log_end_offset:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{partition} diverges, but not below its end")
        _LOG.info("log truncated", partition=str(partition), end=log.log_end_offset, to=offset)
        await partition.appender.run_between_appends(log.truncate_to, offset)
        partition.high_watermark = min(partition.high_watermark, log.high_watermark)

    def _was_elected_uncleanly(self) -> bool:
        image = self.partition.image
        return image is not None and bool(image.state_value) and bool(decode_partition_state(image.state_value).rec)
