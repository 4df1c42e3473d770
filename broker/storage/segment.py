"""One segment of a log: the `.log` file and its three indexes.

```
00000000000000000042.log          batch | batch | ...       whole batches, back to back, offsets ascending from 42
00000000000000000042.index        last offset → position           see offset_index
00000000000000000042.timeindex    largest timestamp → offset       see time_index
00000000000000000042.txnindex     aborted transactions             see transaction_index
```

Invariants: the base offset of every batch is at least the segment's; every last offset is below the base offset of the
next segment; no offset is more than 2^31 - 1 above the base offset (the indexes hold 32-bit differences).

One thread appends (and truncates, closes); others may read below the end offset that the log published. Opening a
segment touches no file. The file names may end in `.cleaned`, `.swap` or `.deleted` (`names`): a reader that still
holds a segment which was deleted or replaced reads on under the new name, until the files are removed.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.index.position_cache import PositionCache
from odradek.broker.storage.index.segment_indexes import SegmentIndexes
from odradek.broker.storage.index.time_index import TimestampOffset
from odradek.broker.storage.index.transaction_index import TransactionIndex
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_file import LogFile
from odradek.broker.storage.log_state import LogState
from odradek.broker.storage.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from odradek.broker.storage.resources import LogResources
from odradek.protocol.records.batch_header import NO_TIMESTAMP

MAX_RELATIVE_OFFSET: Final = 0x7FFF_FFFF  # indexes store offsets less the base offset, as int32


class Segment:
    """The batches from `base_offset` up to the next segment.

    `sizes` are the segment's files that exist, by suffix; `ending` follows the suffix in their names. `positions`
    caches where batches are.
    """

    __slots__ = (
        "_created_ms", "_first_timestamp", "_prefix", "base_offset", "indexes", "jitter_ms", "log", "positions",
        "transaction_index",
    )  # fmt: skip

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
        ending: str = "",
    ) -> None:
        prefix = self._prefix = f"{directory}/{file_name(base_offset, '')}"
        self.base_offset = base_offset
        self.log = LogFile(f"{prefix}{LOG_SUFFIX}{ending}", base_offset, descriptors, sizes.get(LOG_SUFFIX, 0))
        self.indexes = SegmentIndexes(self.log, config, sizes, prefix, ending)
        self.transaction_index = TransactionIndex(
            f"{prefix}{TRANSACTION_INDEX_SUFFIX}{ending}",
            base_offset,
            descriptors,
            sizes.get(TRANSACTION_INDEX_SUFFIX),
        )
        self.jitter_ms = jitter_ms
        self._created_ms = created_ms
        self._first_timestamp: int | None = None
        self.positions = PositionCache(self.log)

    def __repr__(self) -> str:
        return f"Segment({self.log})"

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return self.log.size

    @property
    def paths(self) -> list[str]:
        """The paths of the segment's files, whether they exist or not."""
        return [self.log.path, *self.indexes.paths, self.transaction_index.path]

    # ---------------------------------------------------------------------------------------------------------- writing

    def create(self, preallocate_bytes: int = 0) -> None:
        """Create the files, empty, with room in the indexes; preallocate zeros in the log until `finish`."""
        self.log.create(preallocate_bytes)
        self.indexes.create()

    def should_roll(
        self, size: int, max_timestamp: int, last_offset: int, max_bytes: int, max_ms: int, now_ms: int
    ) -> bool:
        """Whether a batch of this size, largest timestamp and last offset needs a new segment.

        Time counts from the first batch's timestamp to the new batch's, not by the clock (Kafka
        `LogSegment.shouldRoll`); the clock decides only where records have no timestamps.
        """
        used = self.log.size
        if used + size > max_bytes or self.indexes.is_full or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not used:
            return False
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp()
        waited = max_timestamp - first if first >= 0 else now_ms - self._created_ms
        return waited > max_ms - self.jitter_ms

    def record_batch(self, base_offset: int, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        """Update size, indexes and positions for the batch that was written at `position`, the end of the log."""
        if not position:
            self._first_timestamp = max_timestamp
        self.indexes.record_batch(last_offset, max_timestamp, position, size)
        self.log.size = position + size
        self.positions.put(base_offset, position, size)

    def finish(self) -> None:
        """Write the last time index entry and cut all files to their contents; no batch follows."""
        self.indexes.finish()
        self.log.trim()

    def flush(self) -> None:
        """Sync all files. An append meanwhile may or may not be included."""
        self.log.flush()
        self.indexes.flush()
        self.transaction_index.flush()

    def truncate_to(self, offset: int, now_ms: int, state: LogState | None = None) -> int:
        """Truncate the batch that holds `offset`, and all after it; return the offset after the last batch.

        `state` is that of the log when it ended at `offset`, if it is known; then nothing is read.
        """
        with self.indexes.lock:
            location = self.locate(offset)
            self.indexes.truncate_to(offset)
            self.transaction_index.truncate_to(offset)
            if location is not None:
                self.log.truncate(location[0])
            # Last: a reader that looked into the truncated part puts what it found into the discarded cache.
            self.positions = PositionCache(self.log)
            if not self.log.size:
                self._created_ms = now_ms
                self._first_timestamp = None
            if state is not None and self is state.segments[-1]:
                self.indexes.largest = state.largest
                return offset
            self.indexes.find_largest_timestamp()
            return self.next_offset()

    def cleaned(self, config: LogConfig, sizes: dict[str, int]) -> Segment:
        """The segment in the `.cleaned` files that compaction has written for this one; `sizes` are theirs."""
        directory, descriptors = self._prefix.rpartition("/")[0], self.log.descriptors
        return Segment(
            directory, self.base_offset, descriptors, config, sizes=sizes, created_ms=0, ending=CLEANED_SUFFIX
        )

    def mark_deleted(self) -> list[str]:
        """Rename all files to `.deleted`, and return their new paths."""
        return self.rename(DELETED_SUFFIX)

    def rename(self, ending: str) -> list[str]:
        """Make the names of all files end in `ending`, the log's first; return the new paths of those that exist."""
        descriptors = self.log.descriptors
        offsets, times = self.indexes.files
        renamed = []
        with self.indexes.lock:  # no rebuild of an index under a name that becomes another segment's
            for file, suffix in (
                (self.log, LOG_SUFFIX),
                (offsets, OFFSET_INDEX_SUFFIX),
                (times, TIME_INDEX_SUFFIX),
                (self.transaction_index, TRANSACTION_INDEX_SUFFIX),
            ):
                target = f"{self._prefix}{suffix}{ending}"
                if descriptors.files.exists(file.path):
                    descriptors.rename(file.path, target)
                    renamed.append(target)
                file.path = target
        return renamed

    def release(self) -> None:
        """Close all files unchanged."""
        for path in self.paths:
            self.log.descriptors.forget(path)

    # ---------------------------------------------------------------------------------------------------------- reading

    def is_complete(self) -> bool:
        """Whether the log's file exists and has exactly the size of its batches."""
        try:
            with self.log.descriptors.pinned(self.log.path) as number:
                return self.log.descriptors.files.size(number) == self.size
        except FileNotFoundError:
            return False
        finally:
            self.log.descriptors.forget(self.log.path)  # another process may replace the file

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is at least `offset`; None if the segment has none."""
        positions = self.positions
        return positions.newer.get(offset) or positions.older.get(offset) or self._look_up(offset)

    def next_offset(self) -> int:
        """The offset after the segment's last batch, found from the last index entry on."""
        next_offset = self.base_offset
        for batch in self.log.batches(self.indexes.offsets.last().position):
            next_offset = batch.last_offset + 1
        return next_offset

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which time-based rolling counts; -1 if there is none."""
        if self._first_timestamp is None:
            batch = self.log.batch_at(0)
            if batch is None:
                return NO_TIMESTAMP
            self._first_timestamp = batch.max_timestamp
        return self._first_timestamp

    def largest_timestamp(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch with it; `(-1, base offset)` without one."""
        return self.indexes.largest_timestamp()

    def retention_timestamp(self) -> int:
        """The time from which the segment's age counts: its largest timestamp, or else its last write.

        Zero is a time, as in Kafka (`LogSegment.largestTimestamp`).
        """
        largest = self.largest_timestamp().timestamp
        return largest if largest >= 0 else self.log.modified_ms()

    def _look_up(self, offset: int) -> tuple[int, int] | None:
        positions = self.positions  # before anything is read: truncation replaces it
        found = self.indexes.locate(offset)  # 6 µs, with two reads of heads of batches
        if found is not None:
            positions.put(offset, *found)
        return found


def create_segment(directory: str, base_offset: int, config: LogConfig, resources: LogResources) -> Segment:
    """Create an empty segment; files of that name from before a crash are overwritten.

    Raises `OSError`; then none of its files exists, unless they cannot be removed either.
    """
    jitter_ms = int(resources.randomness.random() * min(config.segment_jitter_ms, config.segment_ms))
    segment = Segment(
        directory,
        base_offset,
        resources.descriptors,
        config,
        sizes={},
        created_ms=resources.clock.time_ms(),
        jitter_ms=jitter_ms,
    )
    resources.files.remove(segment.transaction_index.path)  # which is created later, if ever
    try:
        segment.create(config.segment_bytes if config.preallocate else 0)
    except OSError:
        # Otherwise a file without batches would be in the middle of the log once the segment before it grows.
        segment.release()
        for path in segment.paths:
            resources.files.remove(path)
        raise
    return segment
