"""The offset index and the time index of a segment, updated with its log, checked against it and rebuilt.

As in Kafka, a batch gets an entry in both once more than `index.interval.bytes` were written since the batch of the
last one. The time index gets one only if the largest timestamp grew, and one more when the segment is finished.

Nothing is read until an index is first needed. Then the ends of the indexes are compared with the log; later, each
look-up is compared with the batch that it finds. Missing and wrong indexes are rebuilt from the heads of the batches.

The appender changes the indexes, and a reader may rebuild them at the same time: `lock` is held for either, and during
truncation.

An index may lack entries: a search then begins earlier. So an entry that a transient error prevents is left to the next
batch, and does not fail an append whose bytes are in the log already.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain
from threading import RLock
from typing import Final

from odradek.broker.storage.batch_scan import CorruptBatchError, Head
from odradek.broker.storage.disk.disk_errors import is_transient
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.index.offset_index import OffsetIndex
from odradek.broker.storage.index.time_index import TimeIndex, TimestampOffset
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_file import LogFile
from odradek.broker.storage.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from odradek.protocol.records.batch_header import NO_TIMESTAMP

_LOG = logging.getLogger(__name__)

HEAD_BYTES: Final = 2048
"""Read of each large batch in a search by time: its first records, among which the wanted one often is."""


class SegmentIndexes:
    """The two indexes of the segment whose log is `log_file`.

    `sizes` are the segment's files that exist, by suffix; their paths are `prefix`, the suffix and `ending`.
    """

    __slots__ = (
        "_bytes_since_entry",
        "_interval",
        "_is_checked",
        "_log_file",
        "_must_rebuild",
        "_offsets",
        "_times",
        "is_full",
        "largest",
        "lock",
    )  # fmt: skip

    def __init__(
        self, log_file: LogFile, config: LogConfig, sizes: dict[str, int], prefix: str, ending: str = ""
    ) -> None:
        base_offset, descriptors, size = log_file.base_offset, log_file.descriptors, config.segment_index_bytes
        self._log_file = log_file
        self._offsets = OffsetIndex(
            f"{prefix}{OFFSET_INDEX_SUFFIX}{ending}", base_offset, descriptors, size, sizes.get(OFFSET_INDEX_SUFFIX)
        )
        self._times = TimeIndex(
            f"{prefix}{TIME_INDEX_SUFFIX}{ending}", base_offset, descriptors, size, sizes.get(TIME_INDEX_SUFFIX)
        )
        self.lock = RLock()
        self.is_full = False
        self._interval = config.index_interval_bytes
        self._is_checked = False
        self._must_rebuild = False  # a rebuild failed halfway
        self._bytes_since_entry = 0
        self.largest: TimestampOffset | None = None  # the last time entry; None until needed

    @property
    def files(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes, unchecked."""
        return self._offsets, self._times

    @property
    def paths(self) -> tuple[str, str]:
        return self._offsets.path, self._times.path

    @property
    def offsets(self) -> OffsetIndex:
        if not self._is_checked:
            self._check()
        return self._offsets

    @property
    def times(self) -> TimeIndex:
        if not self._is_checked:
            self._check()
        return self._times

    # ---------------------------------------------------------------------------------------------------------- writing

    def create(self) -> None:
        """Create both files, empty, with room for all entries."""
        self._offsets.create()
        self._times.create()
        self._is_checked = True

    def record_batch(self, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        """Add entries, if they are due, for the batch that was written at `position`, the end of the log."""
        largest = self.largest
        if largest is None:
            largest = self.largest_timestamp()
        if max_timestamp > largest.timestamp:
            self.largest = largest = TimestampOffset(max_timestamp, last_offset)
        if self._bytes_since_entry > self._interval:
            try:
                self._add_entries(last_offset, position, largest)
            except OSError as error:
                if not is_transient(error):
                    raise
        self._bytes_since_entry += size

    def _add_entries(self, last_offset: int, position: int, largest: TimestampOffset) -> None:
        with self.lock:
            self.offsets.append(last_offset, position)
            self.times.maybe_append(*largest)
            self._bytes_since_entry = 0
            self.is_full = self._offsets.is_full or self._times.is_full

    def finish(self) -> None:
        """Add the entry of the largest timestamp, and cut the files to their entries; no batch follows."""
        if self._is_checked:  # else nothing was appended since they were trimmed
            self._times.maybe_append(*self.largest_timestamp())
            self._offsets.trim()
            self._times.trim()

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of batches that hold `offset` or later offsets; the caller truncates the log."""
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self._bytes_since_entry = 0
        self.is_full = False

    def find_largest_timestamp(self) -> None:
        """Find the largest timestamp of a truncated log: that of the last time entry, or of a batch behind it."""
        largest = self.times.last()
        for batch in self._log_file.batches(self.offsets.lookup(largest.offset).position):
            if batch.max_timestamp > largest.timestamp:
                largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
        self.largest = largest

    def flush(self) -> None:
        if self._offsets.exists:
            self._offsets.flush()
        if self._times.exists:
            self._times.flush()

    # ---------------------------------------------------------------------------------------------------------- reading

    def largest_timestamp(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch with it; `(-1, base offset)` without one."""
        if self.largest is None:
            self.largest = self.times.last()
        return self.largest

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is at least `offset`; None if there is none."""
        size = self._log_file.size
        try:
            return self._locate(offset)
        except (CorruptIndexError, CorruptBatchError) as error:
            with self.lock:
                if self._log_file.size >= size:  # else it was just truncated, and nothing is wrong
                    self._rebuild_because_of(error)
                return self._locate(offset)

    def _locate(self, offset: int) -> tuple[int, int] | None:
        entry = self.offsets.lookup(offset)
        found = self._log_file.find(offset, entry.position)
        if found is None:
            return None
        position, size, base_offset = found
        # Brokers before Kafka 4 wrote the last offset of all batches of an append, which may be beyond this batch.
        if position == entry.position > 0 and base_offset > entry.offset:
            raise CorruptIndexError(f"the index has offset {entry.offset} where {self._log_file} has {base_offset}")
        return position, size

    def lookup_time(self, timestamp: int) -> TimestampOffset:
        """The last time entry at or below `timestamp`; `(-1, base offset)` if there is none."""
        return self.heads_of_time(timestamp)[0]

    def heads_of_time(self, timestamp: int) -> tuple[TimestampOffset, Iterator[Head]]:
        """The same entry, and the batches of the log from one on before which no record is as new as the entry.

        As a rule that is the batch of the entry, which was read to check the entry. They come with their first bytes,
        `HEAD_BYTES` where batches are large.
        """
        size = self._log_file.size
        entry = self.times.lookup(timestamp)
        if entry.timestamp == NO_TIMESTAMP:
            return entry, self._log_file.heads(0, HEAD_BYTES)
        try:
            return entry, self._heads_of(entry)
        except (CorruptIndexError, CorruptBatchError) as error:
            with self.lock:
                if self._log_file.size >= size:  # else it was just truncated, and nothing is wrong
                    self._rebuild_because_of(error)
            entry = self.times.lookup(timestamp)
            return entry, self._log_file.heads(self.offsets.lookup(entry.offset).position, HEAD_BYTES)

    # -------------------------------------------------------------------------------------------- checking, rebuilding

    def reset(self) -> None:
        """Drop all entries: every batch is recorded again afterwards."""
        self._offsets.reset()
        self._times.reset()
        self._is_checked = True
        self._must_rebuild = False
        self._bytes_since_entry = 0
        self.is_full = False
        self.largest = TimestampOffset(NO_TIMESTAMP, self._log_file.base_offset)

    def _check(self) -> None:
        """Compare the ends of the indexes with the log; rebuild them if they do not fit."""
        with self.lock:
            if self._is_checked:
                return
            if self._must_rebuild:
                self._rebuild()
                return
            try:
                self._offsets.check(self._log_file.size)
                self._times.check()
                self._is_checked = True
                self._check_largest_timestamp()
            except (CorruptIndexError, CorruptBatchError) as error:
                self._rebuild_because_of(error)

    def _check_largest_timestamp(self) -> None:
        """Check the last time entry; a finished segment has one if its records have timestamps."""
        if self._times.count:
            self._heads_of(self._times.last())
            return
        first = self._log_file.batch_at(0)
        if first is None or first.max_timestamp == NO_TIMESTAMP:
            return
        if self._offsets.count or self._log_file.size > max(first.size, self._interval):
            raise CorruptIndexError(f"{self._times.path} has no entries")
        self._rebuild()  # nothing is wrong: no entry was due yet

    def _heads_of(self, entry: TimestampOffset) -> Iterator[Head]:
        """The batches of the log from that with the entry's offset on.

        Raises `CorruptIndexError` unless the largest timestamp of that batch is the entry's.
        """
        heads = self._log_file.heads(self.offsets.lookup(entry.offset).position, HEAD_BYTES)
        for head in heads:
            batch = head[0]
            if batch.last_offset >= entry.offset:
                if batch.max_timestamp != entry.timestamp or batch.base_offset > entry.offset:
                    raise CorruptIndexError(f"{self._times.path} has {entry} where the log has {batch}")
                return chain((head,), heads)
        raise CorruptIndexError(f"{self._times.path} has {entry}, which is behind the log")

    def _rebuild_because_of(self, error: Exception) -> None:
        _LOG.warning("rebuilding the indexes of %s: %s", self._log_file, error)
        self._rebuild()

    def _rebuild(self) -> None:
        try:
            self.reset()
            for batch in self._log_file.batches():
                self.record_batch(batch.last_offset, batch.max_timestamp, batch.position, batch.size)
            self.finish()  # an active segment makes room again for its next entry
        except OSError:  # half an index looks like a whole one
            self._must_rebuild = True
            self._is_checked = False
            self.largest = None
            raise
