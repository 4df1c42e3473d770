"""The logs of a directory that a broker may be writing, as their files are at one moment.

| value | source |
|---|---|
| the partitions | `listing` |
| where a partition starts | `log-start-offset-checkpoint`, or its first segment |
| where it ends | after a clean stop, behind its last batch; else the high watermark, `replication-offset-checkpoint` |
| where it ends after an unclean stop, if no broker holds the lock | where recovery would end it, not below that |
| where it ends, without a high watermark | behind the last whole batch |
| whether its end was lost | `LiveLog.lost_end` |
| the last stable offset | the newest snapshot of producers, and the batches behind it |

A checkpoint is some seconds old, so the last seconds of a running broker are not seen; what is seen is complete.
Segments that retention removes meanwhile are left out: the log then starts behind them. Unlike `stored_log_dir`, this
repairs nothing and reads no records, so a reader of the bytes meets any damage.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from contextlib import suppress
from errno import ENOENT
from itertools import takewhile
from types import TracebackType
from typing import NamedTuple, Self

from odradek.broker.storage.batch_scan import CorruptBatchError, read_whole_batches
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint, Partition
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    LOG_SUFFIX,
    META_PROPERTIES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    file_name,
)
from odradek.broker.storage.offline.directory_lock import is_locked
from odradek.broker.storage.offline.listing import NoLogDirError, PartitionFiles, partition_names
from odradek.broker.storage.offline.log_end import find_end, flaw_at, is_room
from odradek.broker.storage.offline.segment_files import FileIdentity, file_identity, status_of, used_bytes
from odradek.broker.storage.producers.producer_snapshots import CorruptSnapshotError, decode_snapshot
from odradek.broker.storage.producers.producer_state import NO_OFFSET
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments

_LOG = logging.getLogger(__name__)

_OPEN_FILES = 64  # of a directory with ten thousand partitions: one is read after the other


class LostEnd(NamedTuple):
    """The end of a log that is not there, or not whole: `size` bytes at `position` of the file at `path`.

    `offset` is the first one that is lost.
    """

    path: str
    position: int
    size: int
    offset: int
    reason: str


class LiveLogDir:
    """A log directory as it is when this object is made. Nothing is written. Must be closed; used by one thread.

    `is_abandoned`: its broker did not stop cleanly, and no broker holds the lock.
    """

    def __init__(self, path: str) -> None:
        """Raises `OSError` if the directory cannot be read, `NoLogDirError` if it is no log directory."""
        self.path = path
        self._files = ReadOnlyFiles()
        self._descriptors = DescriptorCache(self._files, _OPEN_FILES)
        # Before the files are listed: a later stop or checkpoint promises more than was seen.
        self._was_clean = self._is_clean()
        self._was_locked = is_locked(path)
        self.is_abandoned = not self._was_clean and not self._was_locked
        self._high_watermarks = OffsetCheckpoint(self._files, path, HIGH_WATERMARKS).read()
        self._starts = OffsetCheckpoint(self._files, path, LOG_START_OFFSETS).read()
        self._cleaned = OffsetCheckpoint(self._files, path, CLEANER_OFFSETS).read()
        self._names = {key: name for name, key in partition_names(self._files, path)}
        self._listed: dict[Partition, PartitionFiles] = {}
        if not self._files.exists(f"{path}/{META_PROPERTIES}") and not any(map(self.contains, self._names)):
            raise NoLogDirError(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of all logs."""
        self._descriptors.close()

    @property
    def partitions(self) -> list[Partition]:
        """All partitions. Lists the directory of each."""
        return sorted(filter(self.contains, self._names))

    def topics(self) -> set[str]:
        """The topics of the directories, a few of which may contain no partition (`contains`)."""
        return {topic for topic, _ in self._names}

    def candidates(self, topics: Container[str]) -> list[Partition]:
        """The directories of these topics, a few of which may contain no partition (`contains`)."""
        return sorted(key for key in self._names if key[0] in topics)

    def contains(self, partition: Partition) -> bool:
        """Whether a directory of that name contains a partition."""
        if partition not in self._names:
            return False
        try:
            return self._files_of(partition).is_log
        except FileNotFoundError:
            return False

    def exists(self, partition: Partition) -> bool:
        """Whether the directory of a partition is still there."""
        return self._files.exists(f"{self.path}/{self._names[partition]}")

    def open(self, partition: Partition) -> LiveLog:
        """Open the log of one of `partitions`. Raises `OSError`, `FileNotFoundError` if it changes meanwhile.

        Closes the files of the logs before it. So nothing is read from a file that was replaced since.
        """
        files = self._files_of(partition)
        del self._listed[partition]
        self.close()
        self._descriptors = DescriptorCache(ReadOnlyFiles(), _OPEN_FILES)
        return LiveLog(self, files, self._descriptors, self._starts.get(partition, 0))

    def high_watermark(self, partition: Partition) -> int | None:
        """The high watermark at which the log ends; None if it ends behind its last batch."""
        return None if self._was_clean else self._high_watermarks.get(partition)

    def last_high_watermark(self, partition: Partition) -> int:
        """The high watermark that was last stored; 0 without one. All records below it were there."""
        return self._high_watermarks.get(partition, 0)

    def was_compacted(self, partition: Partition) -> bool:
        """Whether the partition is in `cleaner-offset-checkpoint`."""
        return partition in self._cleaned

    def may_be_written(self) -> bool:
        """Whether a broker may be writing: it holds or held the lock, or has started since this object was made."""
        return self._was_locked or is_locked(self.path) or (self._was_clean and not self._is_clean())

    def _is_clean(self) -> bool:
        return self._files.exists(f"{self.path}/{CLEAN_SHUTDOWN}")

    def _files_of(self, partition: Partition) -> PartitionFiles:
        if partition not in self._listed:
            files = ReadOnlyFiles()  # it goes on listing what it has opened
            self._listed[partition] = PartitionFiles(files, self.path, self._names[partition], partition)
        return self._listed[partition]


class LiveLog:
    """One partition: its segments, its start offset (inclusive) and its end offset (exclusive).

    `last_end` is the offset behind the last whole batch; the size of the last segment's log counts up to there. With
    `ends_by_offset`, records at `end_offset` or behind it must not be read. `identities`: the file of each log, by base
    offset. `without_log`: the base offsets of segments that have an index only.
    """

    def __init__(
        self, log_dir: LiveLogDir, files: PartitionFiles, descriptors: DescriptorCache, start_offset: int
    ) -> None:
        self.partition = files.key
        self.directory = files.path
        self.was_compacted = log_dir.was_compacted(self.partition)
        self._log_dir = log_dir
        self._snapshots = files.snapshots
        self._files = descriptors.files
        self._descriptors = descriptors
        self.without_log = sorted(files.segments.keys() - set(files.logs))
        self.identities: dict[int, FileIdentity] = {}
        self.segments = Segments(self._open_segments(files))
        self.start_offset = max(start_offset, self.segments.first.base_offset)
        active = self.segments.active
        high_watermark = log_dir.high_watermark(self.partition)
        self._file_size = active.size
        active.log.size, self.last_end = find_end(active.log, active.indexes.files[0], high_watermark)
        self.ends_by_offset = high_watermark is not None
        end_offset = high_watermark if high_watermark is not None else self.last_end
        if high_watermark is not None and log_dir.is_abandoned:
            end_offset = self._recovered_end(high_watermark)
        self.end_offset = max(end_offset, self.start_offset)

    def drop_removed(self) -> bool:
        """Drop the first segments if retention has removed them since the log was opened; whether it has.

        After a `FileNotFoundError`, a caller can so start again in the log that is left.
        """
        *closed, _ = self.segments
        removed = list(takewhile(lambda segment: self._is_removed(segment.base_offset), closed))
        self.segments.replace(removed)
        self.start_offset = max(self.start_offset, self.segments.first.base_offset)
        self.end_offset = max(self.end_offset, self.start_offset)
        return bool(removed)

    def find_times(self) -> None:
        """Complete the time index of the last segment, which lacks the end of a log that is being written."""
        with suppress(CorruptBatchError):
            self.segments.active.indexes.find_largest_timestamp()

    def lost_end(self) -> LostEnd | None:
        """The damage at the end of the log; None if its end is whole, or if a broker may be writing there.

        | evidence | damage |
        |---|---|
        | a high watermark that was stored above the last whole batch | always |
        | part of a batch, after a clean stop | yes |
        | part of a batch, or an index entry behind the end, but no high watermark | unless the lock is held |
        | part of a batch, above the high watermark, without a clean stop | no: it was never committed |
        | preallocated zeros | no |

        Raises `FileNotFoundError` if the log has changed since it was opened.
        """
        log = self.segments.active.log
        size = self._file_size - log.size
        high_watermark = self._log_dir.last_high_watermark(self.partition)
        whole_size, log.size = log.size, self._file_size
        try:
            is_torn = size > 0 and not is_room(log, whole_size)
            reason = flaw_at(log, whole_size) if is_torn else None
        finally:
            log.size = whole_size
        if self.last_end < high_watermark:
            reason = reason or (
                f"the log ends at offset {self.last_end - 1}, below its high watermark {high_watermark}"
            )
        elif self.ends_by_offset:
            return None
        elif reason is None:
            indexed = self._last_indexed()
            if indexed >= self.last_end:
                reason = f"the log ends at offset {self.last_end - 1}, but its index contains offset {indexed}"
        if reason is None:
            return None
        if self.last_end >= high_watermark and self._log_dir.may_be_written():
            return None
        status = status_of(log.path)
        is_same_file = file_identity(status) == self.identities[log.base_offset]
        if not is_same_file or status.st_size != self._file_size:
            raise FileNotFoundError(ENOENT, "it was written or replaced just now", log.path)
        return LostEnd(log.path, whole_size, size if is_torn else 0, self.last_end, reason)

    def _recovered_end(self, high_watermark: int) -> int:
        """The end that recovery would find: behind the last batch above the high watermark that is whole and valid."""
        end = high_watermark
        for segment in self.segments.from_offset(high_watermark):
            if segment.base_offset > end:
                break  # offsets in between are lost; compaction does not come so far
            try:
                found = segment.locate(high_watermark)
                position = segment.size if found is None else found[0]
                for batch, _ in read_whole_batches(self._descriptors, segment.log.path, position, segment.size):
                    if batch.base_offset > end:
                        break
                    end = batch.last_offset + 1
            except (CorruptBatchError, CorruptIndexError):
                break
        if end > high_watermark:
            _LOG.warning(
                "%s was not stopped cleanly, and no broker uses it: it is read up to offset %d, where recovery would "
                "end it; the high watermark that was stored last is %d",
                self.directory,
                end,
                high_watermark,
            )
        return end

    def _last_indexed(self) -> int:
        """The highest offset in the index of the last segment whose position is behind the log; -1 without one."""
        offsets, _ = self.segments.active.indexes.files
        with suppress(CorruptIndexError):
            if offsets.exists and offsets.count:
                last = offsets.last()
                if last.position >= self._file_size:
                    return last.offset
        return -1

    def last_stable_offset(self) -> int:
        """The offset of the first transaction that is not ended below `end_offset`, or `end_offset`."""
        open_since, position_offset = self._open_transactions()
        try:
            for segment in self.segments.from_offset(position_offset):
                for batch, header in segment.log.headers():
                    if batch.base_offset >= self.end_offset:
                        break
                    if batch.last_offset < position_offset or not header.is_transactional:
                        continue
                    if header.is_control:
                        open_since.pop(header.producer_id, None)
                    else:
                        open_since.setdefault(header.producer_id, batch.base_offset)
        except CorruptBatchError:
            pass  # transactions behind the damage stay open; a reader that comes so far reports it
        return max(self.start_offset, min([self.end_offset, *open_since.values()]))

    def _open_transactions(self) -> tuple[dict[int, int], int]:
        """The first offset of each open transaction by producer, at the offset of the latest sound snapshot."""
        for offset in sorted(self._snapshots, reverse=True):
            if offset <= self.end_offset:
                try:
                    entries = decode_snapshot(
                        self._files.read(f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}")
                    )
                except CorruptSnapshotError:
                    continue
                since = {entry.producer_id: entry.transaction_first_offset for entry in entries}
                return {producer: first for producer, first in since.items() if first != NO_OFFSET}, offset
        return {}, self.start_offset

    def _open_segments(self, files: PartitionFiles) -> list[Segment]:
        """The segments from the last one back to the first one that is still there."""
        segments: list[Segment] = []
        for base_offset in reversed(files.logs):
            try:
                segments.append(self._segment(files, base_offset))
            except FileNotFoundError:
                older = files.logs[: -len(segments) or None]
                if not segments or not all(map(self._is_removed, older)):
                    raise
                break
        if not segments:
            raise FileNotFoundError(ENOENT, "no segment is in it", self.directory)
        return segments

    def _is_removed(self, base_offset: int) -> bool:
        """Whether a segment is gone, and compaction has put or will put no other one in its place."""
        path = f"{self.directory}/{file_name(base_offset, LOG_SUFFIX)}"
        for ending in (SWAP_SUFFIX, ""):  # in this order: a swap loses its ending
            with suppress(FileNotFoundError):
                status_of(path + ending)
                return False
        return True

    def _segment(self, files: PartitionFiles, base_offset: int) -> Segment:
        sizes = {}
        for suffix, listed_size in files.segments[base_offset].items():
            path, size = files.path_of(base_offset, suffix), listed_size
            if suffix == LOG_SUFFIX:
                status = status_of(path)  # identity and size in one call: another file may have the name by now
                self.identities[base_offset] = file_identity(status)
                size = status.st_size
            sizes[suffix] = used_bytes(self._files, path, suffix, size)
        ending = files.ending(base_offset)
        return Segment(
            self.directory, base_offset, self._descriptors, LogConfig(), sizes=sizes, created_ms=0, ending=ending
        )
