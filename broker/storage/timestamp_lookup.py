"""Finding offsets by time (ListOffsets): through the time index to a place in the log, then record by record.

Answers are exact: of the first record in log order with a timestamp at or above the one asked for. Timestamps may go up
and down, so this is not where all later records are newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.storage.batch_scan import StoredBatch
from broker.storage.segment import Segment
from broker.storage.segments import Segments
from protocol.batch_header import NO_TIMESTAMP
from protocol.message_set import iter_messages
from protocol.records import Record, iter_records, read_batch_header


class RecordPosition(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch (-1 where the format has none)."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(segments: Segments, timestamp: int, start_offset: int) -> RecordPosition | None:
    """The first record from `start_offset` on with at least this timestamp."""
    for segment in segments.as_new_as(timestamp, start_offset):
        found = _find_in_segment(segment, timestamp, start_offset)
        if found is not None:
            return found
    return None


def find_largest_timestamp(segments: Segments, start_offset: int) -> RecordPosition | None:
    """The first record with the largest timestamp in the segments from the one that may hold `start_offset` on.

    None if no record has any.
    """
    segment = segments.newest(start_offset)
    timestamp, last_offset = segment.largest_timestamp()
    if timestamp == NO_TIMESTAMP:
        return None
    for batch in segment.log.batches(segment.indexes.offsets.lookup(last_offset).position):
        if batch.max_timestamp == timestamp:
            return _first_at_least(segment, batch, timestamp, segment.base_offset)
    return None


def find_timestamp_at(segments: Iterable[Segment], offset: int) -> int | None:
    """The largest timestamp of the first batch that does not end before `offset`."""
    for segment in segments:
        for batch in segment.log.batches(segment.indexes.offsets.lookup(offset).position):
            if batch.last_offset >= offset:
                return batch.max_timestamp
    return None


def _find_in_segment(segment: Segment, timestamp: int, start_offset: int) -> RecordPosition | None:
    # The entry for T says that what is newer than T comes later; so what is as new as the time asked for may lie right
    # at an entry of exactly that time, and the search goes from the last entry at or below it.
    indexed = segment.indexes.lookup_time(timestamp)
    position = segment.indexes.offsets.lookup(max(indexed.offset, start_offset)).position
    for batch in segment.log.batches(position):
        if batch.max_timestamp >= timestamp and batch.last_offset >= start_offset:
            found = _first_at_least(segment, batch, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _first_at_least(segment: Segment, batch: StoredBatch, timestamp: int, start_offset: int) -> RecordPosition | None:
    for record in _records(segment, batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return RecordPosition(record.timestamp, record.offset, batch.leader_epoch)
    return None


def _records(segment: Segment, batch: StoredBatch) -> Iterable[Record]:
    data = segment.log.read(batch)
    return iter_records(data, 0, read_batch_header(data)) if batch.magic == 2 else iter_messages(data)
