"""A log as its segments: bytes in at the end, slices out, cut at the end, synced. What the bytes mean is `log.Log`'s.

`end` is the one thing that readers beside the appender go by: the offset that comes next, and the segment and position
where it will be. It is replaced as a whole, after everything below it is written. While a segment is new and empty,
`end` may still name the one before: the bytes are the same.

`recovery_point`: everything below is synced, so that recovery need not look at it. It only rises by `flush`, and falls
when the log is cut below it.
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
from odradek.broker.storage.names import CLEANED_SUFFIX, SWAP_SUFFIX
from odradek.broker.storage.opening.recovery import recover_segment
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.segment import Segment, create_segment
from odradek.broker.storage.segments import Segments
from odradek.protocol.records.batch_header import BatchHeader

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_TIMESTAMP: Final = slice(35, 43)  # where a batch has its largest timestamp (`batch_scan`)


class LogEnd(msgspec.Struct, frozen=True):
    """Where the next batch goes: its offset (the exclusive end of the log), segment, and position behind the last."""

    offset: int
    segment: Segment
    position: int


class SegmentedLog:
    """The segments of one partition's directory. One appender at a time; readers and one `flush` beside it.

    Raises `OSError` where the disk fails and `CorruptBatchError` where what was written is not there any more. What
    fails with a transient error (`disk_errors`) has changed nothing, but for `truncate_to` and `start_over`.

    `before_roll` is called with the base offset of each new segment at the end, before that is made.
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
        self._log_only_synced: Segment | None = None  # of the last flush: the segment whose indexes were left out
        self.before_roll: Callable[[int], None] = _nothing
        self.changed = False  # since it was opened: a log that was only read needs no closing work
        self._resources = resources
        self._flush_lock = Lock()
        self._change_lock = Lock()  # held while files go or change their names
        self._changes = 0  # rises at the beginning and at the end of that: odd while it is under way

    @property
    def recovery_point(self) -> int:
        """Where recovery would have to begin (exclusive end of what is certain)."""
        segment = self._log_only_synced
        if segment is None or segment is self.segments.active:
            return self._synced_up_to  # recovery looks at all of the segment that holds it, and makes its indexes again
        return min(self._synced_up_to, segment.base_offset)

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._segment_bytes = config.segment_bytes  # every append asks for these two
        self._segment_ms = config.max_segment_ms

    # ------------------------------------------------------------------------------------------------------- appending

    def append(self, data: BytesLike, base_offset: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """Append one batch with these offsets; return the segment that took it."""
        size = len(data)
        segment = self.segments.active
        if segment.should_roll(size, max_timestamp, last_offset, self._segment_bytes, self._segment_ms, now_ms):
            segment = self.roll(base_offset)
        if segment.indexes.largest is None:
            segment.indexes.largest_timestamp()  # may read: now, because a batch that is written must be noted
        self.changed = True
        position = segment.log.write(data)
        segment.note_batch(base_offset, last_offset, max_timestamp, position, size)
        self.end = LogEnd(last_offset + 1, segment, position + size)
        return segment

    def append_batches(self, data: BytesLike, headers: list[tuple[int, BatchHeader]], now_ms: int) -> Segment:
        """Append the batches of `data`, whose positions in it and headers are given, into one segment."""
        first, last = headers[0][1], headers[-1][1]
        max_timestamp = max(header.max_timestamp for _, header in headers)
        segment = self.segments.active
        if segment.should_roll(
            len(data), max_timestamp, last.last_offset, self._segment_bytes, self._segment_ms, now_ms
        ):
            segment = self.roll(first.base_offset)
        if segment.indexes.largest is None:
            segment.indexes.largest_timestamp()
        self.changed = True
        start = segment.log.write(data)
        for position, header in headers:
            segment.note_batch(
                header.base_offset, header.last_offset, header.max_timestamp, start + position, header.size
            )
        self.end = LogEnd(last.next_offset, segment, start + len(data))
        return segment

    def may_roll(self, records: memoryview | bytearray, largest: int, last_offset: int, now_ms: int) -> bool:
        """Whether appending a batch, that may grow to `largest` bytes and ends at `last_offset` may begin a segment."""
        max_timestamp = int.from_bytes(records[_MAX_TIMESTAMP], "big", signed=True)
        size = max(len(records), largest)
        return self.segments.active.should_roll(
            size, max_timestamp, last_offset, self._segment_bytes, self._segment_ms, now_ms
        )

    def roll(self, base_offset: int) -> Segment:
        """Finish the active segment and make a new one, for `base_offset` and what follows."""
        active = self.segments.active
        self.before_roll(base_offset)
        active.finish()
        # An empty active segment is rolled only when its indexes have room for nothing, and makes place for its like.
        segment = self._replace([active] if active.base_offset == base_offset else [], base_offset)
        _LOG.info("rolled %s at offset %d", self.directory, base_offset)
        return segment

    # --------------------------------------------------------------------------------------------------------- reading

    def look(self, look: Callable[[Segments], T]) -> T:
        """Return `look(segments)`, looking again if files were renamed or removed meanwhile."""
        while True:
            changes = self._changes
            try:
                found = look(self.segments)
                if changes == self._changes:
                    return found
            except (FileNotFoundError, CorruptBatchError, CorruptIndexError):
                if changes == self._changes and not changes % 2:
                    raise
                self._wait_for_change()

    def _wait_for_change(self) -> None:
        """Wait for the end of a change that is under way, which is renames but no sync: it may be why a look failed."""
        with self._change_lock:
            pass

    def read(self, offset: int, max_bytes: int, end_offset: int, minimum_one_batch: bool) -> LogSlice:
        """The slice from the batch that holds `offset`, or the next one, up to `end_offset`, within one segment."""
        while True:  # as in `look`, without the closure: this is every Fetch
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
                continue  # compaction left nothing behind `offset` in here
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
        """Recover the active segment, given the producers' state at its base offset; return where the log ends."""
        active = self.segments.active
        self.changed = True
        recover_segment(active, producers, leader_epochs, lambda _: None)
        self._synced_up_to = min(self._synced_up_to, active.base_offset)
        self.end = LogEnd(active.next_offset(), active, active.size)
        return self.end.offset

    # ---------------------------------------------------------------------------------------------------------- cutting

    def truncate_to(self, offset: int, now_ms: int) -> list[Segment]:
        """Drop the batches that hold `offset` or come later; return the segments that went whole.

        # Differs from Kafka: the log then ends behind its last batch, which may be before `offset`. In Kafka it ends at
        `offset` until a restart finds the same end as we; a follower could not append the batch that it lost.
        """
        with self._changing():
            removed = [segment for segment in self.segments if segment.base_offset > offset]
            if len(removed) == len(self.segments):
                self._start_over(offset)
            else:
                active = self.segments.from_offset(offset)[0]
                self.end = LogEnd(offset, active, 0)  # readers must not take what is about to go
                self._remove(removed)
                active.truncate_to(offset, now_ms)
                self._end_at(LogEnd(active.next_offset(), active, active.size))
        self._sync_cut()
        return removed

    def start_over(self, offset: int) -> list[Segment]:
        """Drop everything and begin at `offset`; return the segments that went."""
        with self._changing():
            removed = list(self.segments)
            self._start_over(offset)
        self._sync_cut()
        return removed

    def delete(self, removed: list[Segment]) -> None:
        """Take segments out at the front; not the active one. The appender may go on meanwhile."""
        with self._changing():
            self._remove(removed)

    def swap_in(self, cleaned: Segment, replaced: list[Segment]) -> bool:
        """Put `cleaned`, whose files are `.cleaned`, in the place of `replaced`; False if some of that is not there.

        At every moment one of the two can be found and read whole, by those who read and by a recovery (`leftovers`).
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
                cleaned.rename(CLEANED_SUFFIX)  # a start must not take for complete what is half renamed
                raise
            self.segments.replace(replaced, [cleaned])
            self._delete_files(replaced)
            self._changes += 2  # a path that somebody has looked up in `replaced` is another file's from here on
            cleaned.rename("")
        self._resources.files.fsync_directory(self.directory)
        return True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold up flushes, and readers that find something missing; nothing is synced meanwhile."""
        with self._flush_lock, self._change_lock:
            self.changed = True
            self._changes += 1
            try:
                yield
            finally:
                self._changes += 1

    def _start_over(self, offset: int) -> None:
        self._end_at(LogEnd(offset, self._replace(list(self.segments), offset), 0))

    def _end_at(self, end: LogEnd) -> None:
        self._synced_up_to = min(self._synced_up_to, end.offset)
        self.end = end

    def _sync_cut(self) -> None:
        """The log was cut: what is gone must not come back with a power cut, so that is synced at once."""
        self.segments.active.flush()
        self._resources.files.fsync_directory(self.directory)

    def _remove(self, removed: list[Segment]) -> None:
        """Take segments out of the log; their files go after `file.delete.delay.ms`."""
        if removed:
            self.segments.replace(removed)
            self._delete_files(removed)

    def _replace(self, removed: list[Segment], base_offset: int) -> Segment:
        self.changed = True
        paths = [path for segment in removed for path in segment.mark_deleted()]
        try:
            segment = create_segment(self.directory, base_offset, self.config, self._resources)
        except OSError:
            for each in removed:
                each.rename("")
            raise
        self.segments.replace(removed, [segment])
        self._delete_later(paths)
        return segment

    def _delete_files(self, removed: list[Segment]) -> None:
        self._delete_later([path for segment in removed for path in segment.mark_deleted()])

    def _delete_later(self, paths: list[str]) -> None:
        if paths:
            self._resources.deletions.add(self.config.file_delete_delay_ms, files=paths)

    # ------------------------------------------------------------------------------------------------------- durability

    def flush(self, up_to: int) -> None:
        """Sync everything below `up_to` (exclusive), and raise the recovery point to it.

        Of the active segment only the log: its indexes would be made again after a power cut, and each file costs a
        wait for the disk. They are synced with the first flush after the segment is finished.
        """
        with self._flush_lock:
            up_to = min(up_to, self.end.offset)
            if up_to > self.recovery_point:
                active = self.segments.active
                self._sync(up_to, active)
                self._log_only_synced = active  # first: should it be finished by now, the recovery point stays below it
                self._synced_up_to = up_to

    def close(self) -> None:
        """Cut the files to what they hold and sync all of them; the log is not to be used any more."""
        with self._flush_lock:
            if self.changed:
                self.segments.active.finish()
                self._sync(self.end.offset + 1, None)
                self._resources.files.fsync_directory(self.directory)
                self._log_only_synced = None
                self._synced_up_to = self.end.offset
            self.release()

    def release(self) -> None:
        """Close all files as they are."""
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
            self._resources.files.fsync_directory(self.directory)  # their names are new


def _nothing(_: int) -> None:
    """Do nothing before a roll."""
