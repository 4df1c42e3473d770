"""The offset for a timestamp: the special timestamps of ListOffsets, or the first record not older than a time.

| timestamp | since version | offset | timestamp and leader epoch with it |
|---|---|---|---|
| -1 latest | 1 | the end of the records that the isolation level may read | -1, the leader's |
| -2 earliest | 1 | log start offset | -1, that of the first record |
| -3 max timestamp (KIP-734) | 7 | the record with the largest timestamp | that record's |
| -4 earliest local (KIP-405) | 8 | as earliest, without tiered storage | -1, that of the first record |
| -5 latest tiered (KIP-1005) | 9 | -1, without tiered storage | -1, -1 |
| -6 earliest pending upload (KIP-1023) | 11 | -1, without tiered storage | -1, -1 |
| ≥ 0 | 1 | the first record with this timestamp or a later one | that record's |

If the found record is not readable yet, the answer is -1, -1, -1, as for an empty log. But a new leader may have a high
watermark below the one that clients have seen. Until its own has reached the start of its epoch, OFFSET_NOT_AVAILABLE
is the answer for the latest offset and for a record that is not readable yet (KIP-207): the offsets that a client sees
never fall. Kafka's `Partition.fetchOffsetForTimestamp`.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.replication.partition import NO_EPOCH, Partition
from odradek.broker.storage.index.timestamp_lookup import DecodingBudget, RecordPosition
from odradek.broker.storage.log import Log
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)

FIRST_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of ListOffsets with each special timestamp."""


class FoundOffset(NamedTuple):
    """A found offset; each field is -1 if there is none."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = FoundOffset(-1, -1, -1)


def find_offset(
    partition: Partition,
    timestamp: int,
    *,
    read_committed: bool,
    current_leader_epoch: int = NO_EPOCH,
    budget: DecodingBudget | None = None,
) -> FoundOffset:
    """Look up the offset for `timestamp` in a partition that this broker leads.

    Raises KafkaError as `Partition.check_serving` and `LogReader.offset_for_timestamp` do, and DecompressionLimitError
    if more than `budget` would have to be decoded; the caller then uses `find_offset_on_thread`.
    """
    partition.check_serving(current_leader_epoch)
    end = partition.readable_end_offset(read_committed=read_committed)
    log = partition.log
    if timestamp == LATEST:
        _check_available(partition)
        return FoundOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return FoundOffset(-1, start, _epoch_of(partition, start))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    return _readable(partition, _find_record(log, timestamp, budget), end)


async def find_offset_on_thread(partition: Partition, timestamp: int, *, read_committed: bool) -> FoundOffset:
    """Look up a timestamp for which `find_offset` would decode too much. Raises KafkaError as it does."""
    partition.check_serving()
    end = partition.readable_end_offset(read_committed=read_committed)
    return _readable(partition, await partition.search(_find_record, partition.log, timestamp, None), end)


def _find_record(log: Log, timestamp: int, budget: DecodingBudget | None) -> RecordPosition | None:
    if timestamp == MAX_TIMESTAMP:
        return log.max_timestamp_offset(budget)
    return log.offset_for_timestamp(timestamp, budget)


def _readable(partition: Partition, found: RecordPosition | None, end: int) -> FoundOffset:
    if found is None:
        return NOTHING
    if found.offset >= end:
        _check_available(partition)
        return NOTHING
    return FoundOffset(*found)


def _check_available(partition: Partition) -> None:
    if not partition.has_reached_epoch_start:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{partition} has not committed its predecessor's records")


def _epoch_of(partition: Partition, offset: int) -> int:
    if offset == partition.log.log_end_offset:
        # The log stores an epoch with its first batch. The next batch would be of the leader's epoch.
        return partition.leader_epoch
    return partition.log.epoch_for_offset(offset)
