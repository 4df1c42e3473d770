"""Offsets by time (ListOffsets): through the time index to a place in the log, then record by record.

The result is exact: the first record in log order with at least the given timestamp. Timestamps may go up and down, so
later records may be older.

The time that a search takes depends on what producers wrote: a batch may expand to 128 MiB, and headers with a larger
timestamp than any record has make the search decode one batch after another. So the event loop passes a
`DecodingBudget`, and repeats a search that exceeds it on a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from odradek.broker.storage.batch_scan import Head, StoredBatch
from odradek.broker.storage.index.segment_indexes import HEAD_BYTES
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments
from odradek.protocol.errors import DecompressionLimitError, ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CODEC_BITS,
    MAGIC,
    NO_TIMESTAMP,
    read_batch_header,
)
from odradek.protocol.records.message_set import iter_messages
from odradek.protocol.records.record_iterator import records_section
from odradek.protocol.records.record_search import find_record

_LOG = logging.getLogger(__name__)


class DecodingBudget:
    """The bytes of records that look-ups may still decode; beyond it they raise DecompressionLimitError."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, size: int) -> None:
        if size > self.left:
            raise DecompressionLimitError("stored", self.left)
        self.left -= size


class RecordPosition(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch (-1 where the format has none)."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(
    segments: Segments, timestamp: int, start_offset: int, budget: DecodingBudget | None = None
) -> RecordPosition | None:
    """The first record from `start_offset` on with at least this timestamp.

    Raises as `_first_at_least`.
    """
    for segment in segments.as_new_as(timestamp, start_offset):
        found = _find_in_segment(segment, timestamp, start_offset, budget)
        if found is not None:
            return found
    return None


def find_largest_timestamp(
    segments: Segments, start_offset: int, budget: DecodingBudget | None = None
) -> RecordPosition | None:
    """The first record with the largest timestamp in the segments from the one that may hold `start_offset` on.

    None if no record has any. Raises as `_first_at_least`.
    """
    segment = segments.newest(start_offset)
    timestamp, last_offset = segment.largest_timestamp()
    if timestamp == NO_TIMESTAMP:
        return None
    for head in segment.log.heads(segment.indexes.offsets.lookup(last_offset).position, HEAD_BYTES):
        if head[0].max_timestamp == timestamp:
            return _first_at_least(segment, head, timestamp, segment.base_offset, budget)
    return None


def find_timestamp_at(segments: Iterable[Segment], offset: int) -> int | None:
    """The largest timestamp of the first batch that ends at `offset` or later."""
    for segment in segments:
        for batch in segment.log.batches(segment.indexes.offsets.lookup(offset).position):
            if batch.last_offset >= offset:
                return batch.max_timestamp
    return None


def _find_in_segment(
    segment: Segment, timestamp: int, start_offset: int, budget: DecodingBudget | None
) -> RecordPosition | None:
    # The entry (T, o) says that records newer than T come behind o; records of exactly T may be at o.
    indexed, heads = segment.indexes.heads_of_time(timestamp)
    if indexed.offset < start_offset:
        heads = segment.log.heads(segment.indexes.offsets.lookup(start_offset).position, HEAD_BYTES)
    for head in heads:
        batch = head[0]
        if batch.max_timestamp >= timestamp and batch.last_offset >= start_offset:
            found = _first_at_least(segment, head, timestamp, start_offset, budget)
            if found is not None:
                return found
    return None


def _first_at_least(
    segment: Segment, head: Head, timestamp: int, start_offset: int, budget: DecodingBudget | None
) -> RecordPosition | None:
    """The first record of a batch from `start_offset` on with at least this timestamp.

    Raises DecompressionLimitError when its records are more than the budget, KafkaError UNKNOWN_SERVER_ERROR when they
    cannot be decompressed, INVALID_RECORD when they are malformed.
    """
    batch = head[0]
    try:
        if batch.magic < MAGIC:
            return _first_message(segment, batch, timestamp, start_offset, budget)
        return _first_record(segment, head, timestamp, start_offset, budget)
    except DecompressionLimitError as error:
        if budget is not None:
            raise
        raise _unreadable(ErrorCode.UNKNOWN_SERVER_ERROR, segment, batch, error) from error
    except RemoteProtocolError as error:
        raise _unreadable(ErrorCode.INVALID_RECORD, segment, batch, error) from error


def _first_message(
    segment: Segment, batch: StoredBatch, timestamp: int, start_offset: int, budget: DecodingBudget | None
) -> RecordPosition | None:
    limit = None
    if budget is not None:
        budget.spend(batch.size)
        limit = budget.left
    for record in iter_messages(segment.log.read(batch), limit):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return RecordPosition(record.timestamp, record.offset, batch.leader_epoch)
    return None


def _first_record(
    segment: Segment, head: Head, timestamp: int, start_offset: int, budget: DecodingBudget | None
) -> RecordPosition | None:
    batch, buffer, at = head
    start_bytes = min(batch.size, HEAD_BYTES)
    if budget is not None:
        budget.spend(start_bytes)
    data = buffer[at : at + start_bytes]
    if len(data) < start_bytes:  # the batch begins near the end of the buffer
        data = segment.log.read(batch, start_bytes)
    header = read_batch_header(data)
    if start_bytes < batch.size:
        if not header.attributes & CODEC_BITS:
            try:
                found = find_record(data[BATCH_HEADER_SIZE:], header, timestamp, start_offset)
            except RemoteProtocolError:  # at the record that the end of `data` cuts off
                found = None
            if found is not None:
                return RecordPosition(*found, batch.leader_epoch)
        if budget is not None:
            budget.spend(batch.size - start_bytes)
        data = segment.log.read(batch)
    try:
        records = records_section(data, 0, header, None if budget is None else budget.left)
    except DecompressionLimitError:
        raise
    except RemoteProtocolError as error:
        raise _unreadable(ErrorCode.UNKNOWN_SERVER_ERROR, segment, batch, error) from error
    if budget is not None and header.codec:
        budget.spend(len(records))
    found = find_record(records, header, timestamp, start_offset)
    return None if found is None else RecordPosition(*found, batch.leader_epoch)


def _unreadable(code: ErrorCode, segment: Segment, batch: StoredBatch, error: Exception) -> KafkaError:
    """The error that Kafka returns for a batch in the log that it cannot decode during a search by time."""
    detail = f"the batch at offset {batch.base_offset} in {segment.log.path} cannot be read: {error}"
    _LOG.error("%s", detail)
    return KafkaError(code, detail)
