"""The segments of a log as one store of bytes: append at the end, read slices, truncate, sync.

`log.Log` interprets the bytes.

`end` is what readers beside the appender rely on: the next offset, with the segment and the position where it will be.
It is replaced as a whole, after everything below it is written. While a segment is new and empty, `end` may still name
the one before: the bytes are the same.

`recovery_point`: everything below it is synced, so that recovery can skip it. Only `flush` raises it; truncation below
it lowers it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar

import msgspec

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.disk.files import BytesLike
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_slice import EMPTY_SLICE, LogSlice
from odradek.broker.storage.log_state import LogState
from odradek.broker.storage.names import CLEANED_SUFFIX, SWAP_SUFFIX
from odradek.broker.storage.opening.recovery import recover_segment
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET, Segment, create_segment
from odradek.broker.storage.segments import Segments
from odradek.protocol.records.batch_header import MAX_TIMESTAMP_POSITION, BatchHeader

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_TIMESTAMP: Final = slice(MAX_TIMESTAMP_POSITION, MAX_TIMESTAMP_POSITION + 8)


class LogEnd(msgspec.Struct, frozen=True):
    """The place of the next batch: its offset (the exclusive end of the log), segment, and position in the file."""

    offset: int
    segment: Segment
    position: int


class SegmentedLog:
    """The segments in one partition's directory. One appender at a time; readers and one `flush` beside it.

    Raises `OSError` if the disk fails, and `CorruptBatchError` if written batches are not there any more. An operation
    that fails with a transient error (`disk_errors`) has changed nothing, except `truncate_to` and
    `truncate_fully_and_start_at`.

    `before_roll` is called with the base offset of each new segment at the end, before the segment is created.
    """

    def __init__(
        self,
        directory: str,
        config: LogConfig,
        resources: LogResources,
        segments: Segments,
        end_offset: int,
        recovery_point: int,
    ) -> None:
        self.directory = directory
        self.config = config
        self.segments = segments
        self.end = LogEnd(end_offset, segments.active, segments.active.size)
        self._synced_up_to = recovery_point
        self._log_only_synced: Segment | None = None  # the segment whose indexes the last flush left out
        self.before_roll: Callable[[int], None] = lambda _: None
        self.changed = False  # since it was opened: a log that was only read is closed without writing
        self._resources = resources
        self._flush_lock = Lock()
        self._change_lock = Lock()  # held while files are removed or renamed
        self._changes = 0  # raised at the beginning and the end of a change: odd during it

    @property
    def recovery_point(self) -> int:
        """The offset where recovery would begin: everything below is synced."""
        segment = self._log_only_synced
        if segment is None or segment is self.segments.active:
            return self._synced_up_to  # recovery reads the whole segment that holds it, and rebuilds its indexes
        return min(self._synced_up_to, segment.base_offset)

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._segment_bytes = config.segment_bytes  # used by every append
        self._segment_ms = config.max_segment_ms

    # ------------------------------------------------------------------------------------------------------- appending

    def append(self, data: BytesLike, base_offset: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """Append one batch with these offsets; return the segment that holds it."""
        size = len(data)
        segment = self.segments.active
        if segment.should_roll(size, max_timestamp, last_offset, self._segment_bytes, self._segment_ms, now_ms):
            segment = self.roll(base_offset, last_offset)
        if segment.indexes.largest is None:
            segment.indexes.largest_timestamp()  # may read and fail, so before the write
        self.changed = True
        position = segment.log.write(data)
        segment.record_batch(base_offset, last_offset, max_timestamp, position, size)
        self.end = LogEnd(last_offset + 1, segment, position + size)
        return segment

    def append_batches(self, data: BytesLike, headers: list[tuple[int, BatchHeader]], now_ms: int) -> Segment:
        """Append the batches of `data` into one segment; `headers` has the position and header of each."""
        first, last = headers[0][1], headers[-1][1]
        max_timestamp = max(header.max_timestamp for _, header in headers)
        segment = self.segments.active
        if segment.should_roll(
            len(data), max_timestamp, last.last_offset, self._segment_bytes, self._segment_ms, now_ms
        ):
            segment = self.roll(first.base_offset, last.last_offset)
        if segment.indexes.largest is None:
            segment.indexes.largest_timestamp()
        self.changed = True
        start = segment.log.write(data)
        for position, header in headers:
            segment.record_batch(
                header.base_offset, header.last_offset, header.max_timestamp, start + position, header.size
            )
        self.end = LogEnd(last.next_offset, segment, start + len(data))
        return segment

    def may_roll(self, records: memoryview | bytearray, largest: int, last_offset: int, now_ms: int) -> bool:
        """Whether appending a batch that may grow to `largest` bytes and ends at `last_offset` may begin a segment."""
        max_timestamp = int.from_bytes(records[_MAX_TIMESTAMP], "big", signed=True)
        size = max(len(records), largest)
        return self.segments.active.should_roll(
            size, max_timestamp, last_offset, self._segment_bytes, self._segment_ms, now_ms
        )

    def roll(self, base_offset: int, last_offset: int = 0) -> Segment:
        """Finish the active segment and create one for batches of these offsets.

        It begins at the end of the log if they fit: a recovery takes a gap between segments for a loss.
        """
        active, end = self.segments.active, self.end.offset
        base_offset = end if last_offset - end <= MAX_RELATIVE_OFFSET else base_offset
        self.before_roll(base_offset)
        active.finish()
        # An empty active segment is rolled only when its indexes are too small for any entry; the new one replaces it.
        segment = self._replace([active] if active.base_offset == base_offset else [], base_offset)
        _LOG.info("rolled %s at offset %d", self.directory, base_offset)
        return segment

    # --------------------------------------------------------------------------------------------------------- reading

    def search(self, find: Callable[[Segments], T]) -> T:
        """Return `find(segments)`; repeat it if files were renamed or removed meanwhile."""
        while True:
            changes = self._changes
            try:
                found = find(self.segments)
                if changes == self._changes:
                    return found
            except (FileNotFoundError, CorruptBatchError, CorruptIndexError):
                if changes == self._changes and not changes % 2:
                    raise
                self._wait_for_change()

    def _wait_for_change(self) -> None:
        """Wait for the end of a change that is under way (renames, no sync), which may be why a search failed."""
        with self._change_lock:
            pass

    def read(self, offset: int, max_bytes: int, end_offset: int, minimum_one_batch: bool) -> LogSlice:
        """The slice from the batch that holds `offset`, or the next one, up to `end_offset`, within one segment."""
        while True:  # as in `search`, without the closure, because every Fetch comes here
            changes = self._changes
            try:
                data = self._read(offset, max_bytes, end_offset, minimum_one_batch)
                if changes == self._changes:
                    return data
                data.release()
            except (FileNotFoundError, CorruptBatchError, CorruptIndexError):
                if changes == self._changes and not changes % 2:
                    raise
                self._wait_for_change()

    def _read(self, offset: int, max_bytes: int, end_offset: int, minimum_one_batch: bool) -> LogSlice:
        end = self.end
        end_offset = min(end_offset, end.offset)
        if offset >= end_offset:
            return EMPTY_SLICE
        segments, first = self.segments.find(offset)
        for index in range(first, len(segments)):
            segment = segments[index]
            location = segment.locate(offset)
            if location is None:
                continue  # compaction removed all batches from `offset` on in this segment
            position, size = location
            if segment is end.segment and end_offset == end.offset:
                limit = end.position
            elif index + 1 < len(segments) and segments[index + 1].base_offset <= end_offset:
                limit = segment.size
            else:
                beyond = segment.locate(end_offset)
                limit = segment.size if beyond is None else beyond[0]
            if size > max_bytes:
                if not minimum_one_batch:
                    return EMPTY_SLICE
                max_bytes = size
            length = min(max_bytes, limit - position)
            return segment.log.slice(position, length, segment.positions) if length > 0 else EMPTY_SLICE
        return EMPTY_SLICE

    def end_of(self, offset: int, data: LogSlice) -> int:
        """An offset above all records in `data`, which was read from `offset`: an upper bound, not the least one."""
        segments = self.segments.from_offset(offset)
        for index, segment in enumerate(segments):
            if segment.base_offset == data.segment_base_offset:
                entry = segment.indexes.offsets.first_at_position(data.position + data.length)
                if entry is not None and data.is_of(segment.log.path):
                    return entry.offset
                return segments[index + 1].base_offset if index + 1 < len(segments) else self.end.offset
        return self.end.offset

    def ends_where_it_says(self) -> bool:
        """Whether the active segment holds whole batches up to the end offset; reads from its last index entry on."""
        active = self.segments.active
        try:
            return active.next_offset() == self.end.offset
        except CorruptBatchError as error:
            _LOG.warning("%s", error)
            return False

    def recover_end(self, producers: ProducerState, leader_epochs: LeaderEpochs) -> int:
        """Recover the active segment, given the producers' state at its base offset; return the log's new end."""
        active = self.segments.active
        self.changed = True
        recover_segment(active, producers, leader_epochs, lambda _: None)
        self._synced_up_to = min(self._synced_up_to, active.base_offset)
        self.end = LogEnd(active.next_offset(), active, active.size)
        return self.end.offset

    # ---------------------------------------------------------------------------------------------------------- cutting

    def truncate_to(self, offset: int, now_ms: int, state: LogState | None = None) -> list[Segment]:
        """Truncate the batches that hold `offset` or come later; return the segments that were removed.

        # Differs from Kafka: the log then ends behind its last batch, which may be before `offset`. In Kafka it ends at
        `offset` until a restart finds the same end as here; a follower could not append the batch that it lost.
        """
        with self._changing():
            removed = [segment for segment in self.segments if segment.base_offset > offset]
            if len(removed) == len(self.segments):
                self._replace_all(offset)
            else:
                active = self.segments.from_offset(offset)[0]
                location = active.locate(offset)
                position = active.size if location is None else location[0]
                self.end = LogEnd(offset, active, position)  # readers must not read what is about to be truncated
                self._remove(removed)
                self._end_at(LogEnd(active.truncate_to(offset, now_ms, state), active, active.size))
        self.segments.active.flush()  # at once: a power cut must not bring the batches back
        self._resources.files.fsync_directory(self.directory)
        return removed

    def truncate_fully_and_start_at(self, offset: int) -> list[Segment]:
        """Remove all segments and begin at `offset`; return the removed segments."""
        with self._changing():
            removed = list(self.segments)
            self._replace_all(offset)
        self.segments.active.flush()
        self._resources.files.fsync_directory(self.directory)
        return removed

    def delete(self, removed: list[Segment]) -> None:
        """Remove segments at the front, never the active one. The appender may run at the same time."""
        with self._changing():
            self._remove(removed)

    def swap_in(self, cleaned: Segment, replaced: list[Segment]) -> bool:
        """Replace `replaced` with `cleaned`, whose files are `.cleaned`; return False if any of these is missing.

        At every moment readers and a recovery (`leftovers`) find one of the two whole.
        """
        with self._changing():
            if not all(segment in self.segments for segment in replaced):
                return False
            if not cleaned.is_complete():
                _LOG.warning("%s is not what compaction wrote, and takes no segment's place", cleaned)
                return False
            try:
                cleaned.rename(SWAP_SUFFIX)
            except OSError:
                cleaned.rename(CLEANED_SUFFIX)  # half renamed must not look complete to a start
                raise
            self.segments.replace(replaced, [cleaned])
            self._delete_later(_deleted_paths(replaced))
            self._changes += 2  # the paths of `replaced` belong to other files from here on
            cleaned.rename("")
        self._resources.files.fsync_directory(self.directory)
        return True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Block flushes, and readers that find a file missing, during a change. Nothing is synced meanwhile."""
        with self._flush_lock, self._change_lock:
            self.changed = True
            self._changes += 1
            try:
                yield
            finally:
                self._changes += 1

    def _replace_all(self, offset: int) -> None:
        self._end_at(LogEnd(offset, self._replace(list(self.segments), offset), 0))

    def _end_at(self, end: LogEnd) -> None:
        self._synced_up_to = min(self._synced_up_to, end.offset)
        self.end = end

    def _remove(self, removed: list[Segment]) -> None:
        """Remove segments from the log; their files are removed after `file.delete.delay.ms`."""
        if removed:
            self.segments.replace(removed)
            self._delete_later(_deleted_paths(removed))

    def _replace(self, removed: list[Segment], base_offset: int) -> Segment:
        self.changed = True
        paths = _deleted_paths(removed)
        try:
            segment = create_segment(self.directory, base_offset, self.config, self._resources)
        except OSError:
            for each in removed:
                each.rename("")
            raise
        self.segments.replace(removed, [segment])
        self._delete_later(paths)
        return segment

    def _delete_later(self, paths: list[str]) -> None:
        if paths:
            self._resources.deletions.add(self.config.file_delete_delay_ms, files=paths)

    # ------------------------------------------------------------------------------------------------------- durability

    def flush(self, up_to: int) -> None:
        """Sync everything below `up_to` (exclusive), and raise the recovery point to it.

        Of the active segment only the log is synced: its indexes would be rebuilt after a power cut, and each file
        costs a wait for the disk. They are synced with the first flush after the segment is finished.
        """
        with self._flush_lock:
            up_to = min(up_to, self.end.offset)
            if up_to > self.recovery_point:
                active = self.segments.active
                self._sync(up_to, active)
                self._log_only_synced = active  # first: it may have been rolled meanwhile
                self._synced_up_to = up_to

    def close(self) -> None:
        """Cut the files to their contents and sync all of them; the log must not be used any more."""
        with self._flush_lock:
            if self.changed:
                self.segments.active.finish()
                self._sync(self.end.offset + 1, None)
                self._resources.files.fsync_directory(self.directory)
                self._log_only_synced = None
                self._synced_up_to = self.end.offset
            self.release()

    def release(self) -> None:
        """Close all files unchanged."""
        for segment in self.segments:
            segment.release()

    def _sync(self, up_to: int, log_only: Segment | None) -> None:
        recovery_point = self.recovery_point
        synced = [segment for segment in self.segments.from_offset(recovery_point) if segment.base_offset < up_to]
        monotonic = self._resources.clock.monotonic
        for segment in synced:
            started = monotonic()
            if segment is log_only:
                segment.log.flush()
            else:
                segment.flush()
            self._resources.on_flush(monotonic() - started)
        if any(segment.base_offset >= recovery_point for segment in synced):
            self._resources.files.fsync_directory(self.directory)  # syncs the names of new files


def _deleted_paths(removed: list[Segment]) -> list[str]:
    return [path for segment in removed for path in segment.mark_deleted()]
