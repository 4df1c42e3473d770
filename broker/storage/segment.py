"""One segment of a log: the `.log` file and its three indexes.

```
00000000000000000042.log          batch | batch | ...       whole batches, back to back, offsets ascending from 42
00000000000000000042.index        last offset → position           see offset_index
00000000000000000042.timeindex    largest timestamp → offset       see time_index
00000000000000000042.txnindex     aborted transactions             see transaction_index
```

Invariants: no batch's base offset is below the segment's, none reaches the base offset of the next segment, no offset
is more than 2^31 - 1 above the base offset (the indexes hold 32-bit differences). `size` counts the bytes that hold
batches; what a failed write left behind it in the file is not of the log, and is overwritten or cut off.

One thread appends (and truncates, closes); others may read below the end offset that the log published. Opening a
segment touches no file. Indexes are looked at when they are first needed, and made again from the log when they are
missing or contradict it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import RLock

from broker.storage.batch_scan import (
    CorruptBatchError,
    StoredBatch,
    find_batch,
    read_whole_batches,
    scan_batches,
    scan_headers,
)
from broker.storage.descriptors import DescriptorCache
from broker.storage.files import BytesLike
from broker.storage.index_file import CorruptIndexError
from broker.storage.log_config import LogConfig
from broker.storage.log_slice import LogSlice
from broker.storage.names import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from broker.storage.offset_index import OffsetIndex
from broker.storage.time_index import TimeIndex, TimestampOffset
from broker.storage.transaction_index import TransactionIndex
from protocol.records import BatchHeader

_log = logging.getLogger(__name__)

MAX_RELATIVE_OFFSET = 0x7FFF_FFFF
_RECENT = 16  # batches whose positions are remembered, once or twice over: consumers at the tail ask for these


class Segment:
    """The batches from `base_offset` up to the next segment. `sizes` are the segment's files that exist, by suffix."""

    def __init__(
        self,
        directory: str,
        base_offset: int,
        descriptors: DescriptorCache,
        config: LogConfig,
        *,
        sizes: dict[str, int],
        created_ms: int,
        jitter_ms: int = 0,
    ) -> None:
        prefix = f"{directory}/{file_name(base_offset, '')}"
        self.base_offset = base_offset
        self.path = prefix + LOG_SUFFIX
        self.size = sizes.get(LOG_SUFFIX, 0)
        self.transaction_index = TransactionIndex(
            prefix + TRANSACTION_INDEX_SUFFIX, base_offset, descriptors, sizes.get(TRANSACTION_INDEX_SUFFIX)
        )
        self.index_full = False
        self.jitter_ms = jitter_ms
        self._created_ms = created_ms
        index_bytes = config.segment_index_bytes
        self._offset_index = OffsetIndex(
            prefix + OFFSET_INDEX_SUFFIX, base_offset, descriptors, index_bytes, sizes.get(OFFSET_INDEX_SUFFIX)
        )
        self._time_index = TimeIndex(
            prefix + TIME_INDEX_SUFFIX, base_offset, descriptors, index_bytes, sizes.get(TIME_INDEX_SUFFIX)
        )
        self._index_interval = config.index_interval_bytes
        self._descriptors = descriptors
        self._indexes_checked = False
        self._index_lock = RLock()  # a reader may find an index wrong and make it again while another thread appends
        self._bytes_since_entry = 0
        self._largest: TimestampOffset | None = None  # None until needed: it is the time index's last entry
        self._first_timestamp: int | None = None
        self._recent: dict[int, tuple[int, int]] = {}  # base offset → position and size of the last batches appended,
        self._less_recent: dict[int, tuple[int, int]] = {}  # and of those before them

    def __repr__(self) -> str:
        return f"Segment({self.path!r}, size={self.size})"

    @property
    def paths(self) -> list[str]:
        """Where the segment's files are, or would be."""
        indexes = (self._offset_index.path, self._time_index.path, self.transaction_index.path)
        return [self.path, *indexes]

    # ------------------------------------------------------------------------------------------------------- writing

    def create(self, preallocate_bytes: int = 0) -> None:
        """Make the files, empty, the indexes with room; `preallocate_bytes` of zeros in the log until `finish`."""
        self._descriptors.create(self.path)
        if preallocate_bytes:
            self._truncate_file(preallocate_bytes)
        self._offset_index.create()
        self._time_index.create()
        self._indexes_checked = True

    def should_roll(
        self, size: int, max_timestamp: int, last_offset: int, max_bytes: int, max_ms: int, now_ms: int
    ) -> bool:
        """Whether a batch of `size` bytes, with these largest timestamp and last offset, belongs into a new segment.

        Time counts from the first batch's timestamp to the new one's, not by the clock (Kafka `LogSegment.shouldRoll`);
        the clock decides only where records have no timestamps.
        """
        if self.size + size > max_bytes or self.index_full or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not self.size:
            return False
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp()
        waited = max_timestamp - first if first >= 0 else now_ms - self._created_ms
        return waited > max_ms - self.jitter_ms

    def write(self, data: BytesLike) -> int:
        """Put `data`, whole batches, behind the last batch and return where; `note_batch` each of them then."""
        position = self.size
        descriptor = self._descriptors.pin(self.path)
        try:
            self._descriptors.files.pwrite(descriptor.number, data, position)
        finally:
            self._descriptors.unpin(descriptor)
        return position

    def note_batch(self, base_offset: int, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        """Take the batch that was written at `position`, the end of the segment, into size and indexes."""
        self.index_batch(last_offset, max_timestamp, position, size)
        self.size = position + size
        if len(self._recent) >= _RECENT:
            self._less_recent = self._recent
            self._recent = {}
        self._recent[base_offset] = position, size

    def index_batch(self, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        largest = self._largest
        if largest is None:
            largest = self.largest_timestamp()
        if max_timestamp > largest.timestamp:
            self._largest = largest = TimestampOffset(max_timestamp, last_offset)
        if not position:
            self._first_timestamp = max_timestamp
        if self._bytes_since_entry > self._index_interval:
            self._add_index_entries(last_offset, position, largest)
        self._bytes_since_entry += size

    def _add_index_entries(self, last_offset: int, position: int, largest: TimestampOffset) -> None:
        with self._index_lock:
            offset_index, time_index = self.offset_index, self.time_index
            offset_index.append(last_offset, position)
            time_index.maybe_append(*largest)
            self._bytes_since_entry = 0
            self.index_full = offset_index.is_full or time_index.is_full

    def finish(self) -> None:
        """No batch will follow: note the largest timestamp in the time index and cut all files to what they hold."""
        if self._indexes_checked:
            self.time_index.maybe_append(*self.largest_timestamp())
            self._offset_index.trim()
            self._time_index.trim()
            if self._file_size() != self.size:
                self._truncate_file(self.size)

    def flush(self) -> None:
        """Sync all files. Appends may go on meanwhile; what they add may or may not be included."""
        descriptor = self._descriptors.pin(self.path)
        try:
            self._descriptors.files.fsync(descriptor.number)
        finally:
            self._descriptors.unpin(descriptor)
        if self._offset_index.exists:
            self._offset_index.flush()
        if self._time_index.exists:
            self._time_index.flush()
        self.transaction_index.flush()

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batch that holds `offset`, and all after it."""
        with self._index_lock:
            location = self.locate(offset)
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            self.transaction_index.truncate_to(offset)
            self._recent, self._less_recent = {}, {}
            if location is not None:
                position, _ = location
                self.size = position  # first: a reader that finds less than this was cut off looks again
                self._truncate_file(position)
            if not self.size:
                self._created_ms = now_ms
                self._first_timestamp = None
            self._bytes_since_entry = 0
            self.index_full = False
            self._largest = self._read_largest_timestamp()

    def cut(self, size: int) -> None:
        """Drop what stands from position `size` on: it is no batch, so the indexes know nothing of it."""
        self._truncate_file(size)
        self.size = size

    def mark_deleted(self) -> list[str]:
        """Rename all files so that they are of no log any more, and return their new paths."""
        marked = []
        for path in self.paths:
            self._descriptors.forget(path)
            if self._descriptors.files.exists(path):
                self._descriptors.files.rename(path, path + DELETED_SUFFIX)
                marked.append(path + DELETED_SUFFIX)
        return marked

    def release(self) -> None:
        """Close all files as they are."""
        for path in self.paths:
            self._descriptors.forget(path)

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def offset_index(self) -> OffsetIndex:
        if not self._indexes_checked:
            self.check_indexes()
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if not self._indexes_checked:
            self.check_indexes()
        return self._time_index

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is at least `offset`; None if the segment has none."""
        location = self._recent.get(offset) or self._less_recent.get(offset)
        if location is not None:
            return location
        size = self.size
        try:
            return self._locate_by_index(offset)
        except (CorruptIndexError, CorruptBatchError) as error:
            with self._index_lock:
                if self.size >= size:  # else it was cut just now, and nothing is wrong
                    _log.warning("making the indexes of a segment again: %s", error)
                    self.rebuild_indexes()
                return self._locate_by_index(offset)

    def _locate_by_index(self, offset: int) -> tuple[int, int] | None:
        entry = self.offset_index.lookup(offset)
        found = find_batch(self._descriptors, self.path, entry.position, self.size, offset)
        if found is None:
            return None
        position, size, base_offset = found
        # Brokers before Kafka 4 noted the last offset of all batches of an append, so it may lie beyond the batch.
        if position == entry.position > 0 and base_offset > entry.offset:
            raise CorruptIndexError(f"the index says offset {entry.offset} where {self.path} has {base_offset}")
        return position, size

    def batches_from(self, position: int) -> Iterator[StoredBatch]:
        """The batches from `position`, a boundary, to the end; `CorruptBatchError` where there is none."""
        return scan_batches(self._descriptors, self.path, position, self.size)

    def headers_from(self, position: int) -> Iterator[tuple[StoredBatch, BatchHeader]]:
        """The batches of magic 2 from `position` on, with their headers; raises as `batches_from`."""
        return scan_headers(self._descriptors, self.path, position, self.size)

    def whole_batches(self) -> Iterator[tuple[StoredBatch, memoryview]]:
        """All batches with their bytes, checksums verified; `CorruptBatchError` at the first that is not sound."""
        return read_whole_batches(self._descriptors, self.path, 0, self.size)

    def read_batch(self, batch: StoredBatch) -> bytes:
        """All bytes of a batch."""
        with self.slice(batch.position, batch.size) as data:
            return data.read()

    def slice(self, position: int, length: int) -> LogSlice:
        return LogSlice(self._descriptors, self._descriptors.pin(self.path), position, length, self.base_offset)

    def next_offset(self) -> int:
        """The offset after the segment's last batch, found from the last index entry on."""
        next_offset = self.base_offset
        for batch in self.batches_from(self.offset_index.last().position):
            next_offset = batch.last_offset + 1
        return next_offset

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which time-based rolling counts; -1 if there is none."""
        if self._first_timestamp is None:
            batch = next(self.batches_from(0), None)
            if batch is None:
                return -1
            self._first_timestamp = batch.max_timestamp
        return self._first_timestamp

    def largest_timestamp(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch with it; `(-1, base offset)` without one."""
        if self._largest is None:
            self._largest = self.time_index.last()
        return self._largest

    # ------------------------------------------------------------------------------------------------------- indexes

    def check_indexes(self) -> None:
        """See whether the indexes can be of this log; make them again if not."""
        with self._index_lock:
            if self._indexes_checked:
                return
            try:
                self._offset_index.check(self.size)
                self._time_index.check()
                self._indexes_checked = True
                self._check_largest_timestamp()
            except (CorruptIndexError, CorruptBatchError) as error:
                _log.warning("making the indexes of a segment again: %s", error)
                self.rebuild_indexes()

    def _check_largest_timestamp(self) -> None:
        """A segment that was left in order has a time entry, if its records have times, and the last one is true."""
        last = self._time_index.last()
        if self._time_index.count:
            self.check_time_entry(last)
        elif self.first_timestamp() >= 0:
            raise CorruptIndexError(f"{self._time_index.path} has no entries")

    def check_time_entry(self, entry: TimestampOffset) -> None:
        """Raise `CorruptIndexError` unless the batch that holds the entry's offset has its timestamp as the largest."""
        location = self.locate(entry.offset)
        batch = None if location is None else next(self.batches_from(location[0]))
        if batch is None or batch.max_timestamp != entry.timestamp or batch.base_offset > entry.offset:
            raise CorruptIndexError(f"{self._time_index.path} says {entry} where the log has {batch}")

    def rebuild_indexes(self) -> None:
        """Make offset and time index again from the heads of the batches."""
        with self._index_lock:
            self.reset_indexes()
            for batch in self.batches_from(0):
                self.index_batch(batch.last_offset, batch.max_timestamp, batch.position, batch.size)
            self._time_index.maybe_append(*self.largest_timestamp())
            self._offset_index.trim()  # the next entry of an active segment makes room again
            self._time_index.trim()

    def reset_indexes(self) -> None:
        """Empty offset and time index, and all that is remembered beside them."""
        self._offset_index.reset()
        self._time_index.reset()
        self._indexes_checked = True
        self._bytes_since_entry = 0
        self.index_full = False
        self._largest = TimestampOffset(-1, self.base_offset)
        self._first_timestamp = None
        self._recent, self._less_recent = {}, {}

    def _read_largest_timestamp(self) -> TimestampOffset:
        """Largest timestamp of a segment that was cut: of the last time entry, or of a batch behind what it covers."""
        largest = self.time_index.last()
        for batch in self.batches_from(self.offset_index.lookup(largest.offset).position):
            if batch.max_timestamp > largest.timestamp:
                largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
        return largest

    def _file_size(self) -> int:
        descriptor = self._descriptors.pin(self.path)
        try:
            return self._descriptors.files.size(descriptor.number)
        finally:
            self._descriptors.unpin(descriptor)

    def _truncate_file(self, size: int) -> None:
        descriptor = self._descriptors.pin(self.path)
        try:
            self._descriptors.files.truncate(descriptor.number, size)
        finally:
            self._descriptors.unpin(descriptor)
