"""The check of every batch of a segment: its checksum, its offsets, its position, and its entries in the indexes.

The loop over batches of magic 2 is enough for most of a directory, and costs under 1 µs a batch besides its checksum:
batches of 16 KiB are checked at 3 GB/s, of 1 KiB at 1 GB/s, in transactions at half of that (`benchmarks.verify`).
Anything irregular, and the messages of magic 0 and 1, go through `odradek.broker.storage.batch_scan`, which names the
fault.

After a wrong checksum the check continues with the next batch; after an impossible length, at the next position in the
offset index.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.inspection.index_check import OffsetIndexCheck, TimeIndexCheck, next_indexed_position
from odradek.broker.inspection.problem import Problem, Report
from odradek.broker.inspection.segments_outcome import EpochRun
from odradek.broker.inspection.transaction_check import TransactionCheck
from odradek.broker.storage.batch_scan import CorruptBatchError, StoredBatch, read_whole_batches
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET
from odradek.protocol.checksum import crc32c
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CONTROL_BIT,
    CRC_START,
    LOG_OVERHEAD,
    MAGIC,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL_BIT,
)

_HEAD = struct.Struct(
    ">qiibIhi8xq"
)  # base offset … max timestamp, as `odradek.protocol.records.batch_header` draws them
_TRANSACTIONAL_OR_CONTROL = TRANSACTIONAL_BIT | CONTROL_BIT
_CHUNK = 1 << 20
_MAX_BATCH = 1 << 30  # a larger length is damage


class SegmentIndexChecks(NamedTuple):
    """The checks of a segment's two indexes, and the bytes of its offset index."""

    offsets: OffsetIndexCheck
    times: TimeIndexCheck
    offset_index: bytes


class BatchCheck:
    """The segments of one partition, in order; `next_offset` is behind the last sound batch.

    `is_end_known` is False while damage is behind that batch.
    """

    def __init__(
        self,
        descriptors: DescriptorCache,
        transactions: TransactionCheck,
        report: Report,
        progress: Callable[[int], None],
    ) -> None:
        self.next_offset = 0
        self.is_end_known = True
        self.batches = 0
        self.epoch_runs: list[EpochRun] = []
        self._descriptors = descriptors
        self._transactions = transactions
        self._report = report
        self._progress = progress
        self._epoch: int | None = None
        self._end_offset = 0  # behind the last batch; `next_offset` is at least the segment's base offset

    def check(self, path: str, shown_as: str, size: int, base_offset: int, indexes: SegmentIndexChecks) -> None:
        """Check the file at `path`, of `size` bytes; problems name it `shown_as`."""
        segment = _Segment(path, shown_as, size, base_offset, indexes)
        self.next_offset = max(self.next_offset, base_offset)
        position = 0
        while position < size:
            after = self._check_chunk(segment, position)
            position = after if after > position else self._check_one(segment, position)
        if self.epoch_runs:
            self.epoch_runs[-1].end_offset = self._end_offset

    def _check_chunk(self, segment: _Segment, start: int) -> int:
        """Check the sound batches of magic 2 from `start` on, in one read; return the position of the first other."""
        data = self._read(segment.path, start, min(_CHUNK, segment.size - start))
        view, end, at = memoryview(data), len(data), 0
        unpack, offsets, times = _HEAD.unpack_from, segment.indexes.offsets, segment.indexes.times
        next_offset, epoch, largest, limit = (
            self.next_offset,
            self._epoch,
            segment.largest_timestamp,
            segment.last_offset,
        )
        batches = 0
        while at + BATCH_HEADER_SIZE <= end:
            base, length, leader_epoch, magic, crc, attributes, delta, max_timestamp = unpack(data, at)
            stop = at + LOG_OVERHEAD + length
            last = base + delta
            is_batch = magic == MAGIC and length >= MIN_BATCH_LENGTH and stop <= end
            if not is_batch or base < next_offset or not base <= last <= limit:
                break
            if crc32c(view[at + CRC_START : stop]) != crc:
                break
            if leader_epoch != epoch:
                self._begin_epoch(leader_epoch, base, next_offset if batches else self._end_offset)
                epoch = leader_epoch
            largest = max(largest, max_timestamp)
            if start + at >= offsets.awaited:
                offsets.check_batch(start + at, last)
            if last >= times.awaited:
                times.check_batch(base, last, max_timestamp, largest)
            if attributes & _TRANSACTIONAL_OR_CONTROL:
                self._transactions.check_batch(view[at:stop], start + at)
            next_offset = last + 1
            batches += 1
            at = stop
        self.next_offset, self._epoch, segment.largest_timestamp = next_offset, epoch, largest
        self.batches += batches
        if batches:
            self._end_offset = next_offset
            self.is_end_known = True
        self._progress(at)
        return start + at

    def _check_one(self, segment: _Segment, position: int) -> int:
        """Check the bytes at `position`: a large batch, an old message, or damage; return where they end."""
        try:
            batch, data = next(read_whole_batches(self._descriptors, segment.path, position, segment.size))
        except CorruptBatchError as error:
            return self._skip_damage(segment, position, error.reason)
        if batch.base_offset < self.next_offset or batch.last_offset > segment.last_offset:
            span = f"{batch.base_offset} to {batch.last_offset}"
            self._problem(segment, position, f"offsets {span} after {self.next_offset - 1}", batch.base_offset)
        else:
            self._take(segment, batch, data)
        self._progress(batch.size)
        return position + batch.size

    def _take(self, segment: _Segment, batch: StoredBatch, data: memoryview) -> None:
        segment.largest_timestamp = max(segment.largest_timestamp, batch.max_timestamp)
        segment.indexes.offsets.check_batch(batch.position, batch.last_offset)
        # An old message has only its last offset; its records begin behind the message before it.
        first = batch.base_offset if batch.magic == MAGIC else self.next_offset
        segment.indexes.times.check_batch(first, batch.last_offset, batch.max_timestamp, segment.largest_timestamp)
        if batch.magic == MAGIC:
            if batch.leader_epoch != self._epoch:
                self._begin_epoch(batch.leader_epoch, batch.base_offset, self._end_offset)
                self._epoch = batch.leader_epoch
            if _HEAD.unpack_from(data)[5] & _TRANSACTIONAL_OR_CONTROL:
                self._transactions.check_batch(data, batch.position)
        self.next_offset = self._end_offset = batch.last_offset + 1
        self.is_end_known = True
        self.batches += 1

    def _begin_epoch(self, epoch: int, offset: int, end_offset_before: int) -> None:
        if self.epoch_runs:
            self.epoch_runs[-1].end_offset = end_offset_before
        self.epoch_runs.append(EpochRun(epoch, offset, offset))

    def _skip_damage(self, segment: _Segment, position: int, reason: str) -> int:
        """Report the damage at `position`, unless it is preallocated room; return where to continue."""
        if self._is_room(segment, position):
            self._progress(segment.size - position)
            return segment.size
        head = self._read(segment.path, position, min(_HEAD.size, segment.size - position))
        base_offset = None
        end = segment.size
        if len(head) == _HEAD.size:
            base_offset, length, _, magic, *_ = _HEAD.unpack(head)
            stop = position + LOG_OVERHEAD + length
            if magic == MAGIC and MIN_BATCH_LENGTH <= length <= _MAX_BATCH and stop <= segment.size:
                end = stop
            else:
                end = min(next_indexed_position(segment.indexes.offset_index, position) or end, end)
        self.is_end_known = False
        self._problem(segment, position, f"{reason}; skipped {pluralize(end - position, 'byte')}", base_offset)
        self._progress(end - position)
        return end

    def _is_room(self, segment: _Segment, position: int) -> bool:
        for start in range(position, segment.size, _CHUNK):
            if self._read(segment.path, start, min(_CHUNK, segment.size - start)).strip(b"\0"):
                return False
        return True

    def _problem(self, segment: _Segment, position: int, problem: str, offset: int | None) -> None:
        self._report(Problem(segment.shown_as, problem, position, offset))

    def _read(self, path: str, position: int, length: int) -> bytes:
        with self._descriptors.pinned(path) as number:
            return self._descriptors.files.pread(number, length, position)


class _Segment:
    """The segment that is being checked."""

    def __init__(self, path: str, shown_as: str, size: int, base_offset: int, indexes: SegmentIndexChecks) -> None:
        self.path = path
        self.shown_as = shown_as
        self.size = size
        self.last_offset = base_offset + MAX_RELATIVE_OFFSET
        self.indexes = indexes
        self.largest_timestamp = -1
