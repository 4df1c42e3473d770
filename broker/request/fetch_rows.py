"""Rows of a Fetch response: those with an error, and the release of the slices in rows that are not sent."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.replication.fetch.fetch_session import Row
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import EpochEndOffset, FetchPartition, LeaderIdAndEpoch, PartitionData, SnapshotId

# The encoder omits these. They are shared, because a fetch of a thousand partitions would create three thousand.
NO_EPOCH = EpochEndOffset()
NO_LEADER = LeaderIdAndEpoch()
NO_SNAPSHOT = SnapshotId()


def error_row(wanted: FetchPartition, code: ErrorCode) -> PartitionData:
    return PartitionData(wanted.partition, code, -1, -1, -1, NO_EPOCH, NO_LEADER, NO_SNAPSHOT, records=b"")


def add_bounds(row: PartitionData, partition: Partition) -> None:
    """Add the bounds of the log to the OFFSET_OUT_OF_RANGE row of a follower."""
    # Differs from Kafka: a follower there sends ListOffsets, which a topic of the same name, created again, may answer.
    row.log_start_offset = partition.log.log_start_offset
    row.diverging_epoch = EpochEndOffset(partition.leader_epoch, partition.log.log_end_offset)


def release(rows: Sequence[Row]) -> None:
    """Release the slices of rows that no response owns."""
    for _, data in rows:
        if isinstance(data.records, LogSlice):
            data.records.release()
