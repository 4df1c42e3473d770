"""Log directories as somebody reads them who is no broker, while a broker may be writing them.

| what | comes from |
|---|---|
| which partitions | the names of directories |
| where a partition starts | `log-start-offset-checkpoint`, or its first segment |
| where it ends | after a clean stop, with its last batch; else at the high watermark, `replication-offset-checkpoint` |
| where it ends, without a high watermark | before the first batch that is not whole |
| what of that is decided | the newest snapshot of producers, and the batches behind it: `last_stable_offset` |

A checkpoint is some seconds old, so of a running broker the last seconds are not seen; all that is seen is complete.
Unlike `open_log_dir` this mends nothing and reads no records, so damage is found by who reads. A compaction that is
just being swapped in, or was when its broker died, is seen as finished or not begun
(`odradek.broker.storage.opening.leftovers`). For the driver: tasks get byte ranges (`segment_ranges`).
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.index.offset_index import OffsetIndex
from odradek.broker.storage.index.time_index import TimeIndex
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import (
    CLEAN_SHUTDOWN,
    CLEANED_SUFFIX,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    LOG_SUFFIX,
    META_PROPERTIES,
    OFFSET_INDEX_SUFFIX,
    RAFT_METADATA,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
    parse_file_name,
    parse_partition_directory,
    partition_directory,
)
from odradek.broker.storage.producers.producer_snapshots import CorruptSnapshotError, decode_snapshot
from odradek.broker.storage.producers.producer_state import NO_OFFSET
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments
from odradek.client.record import TopicPartition

_ENTRY_SIZES: Final = {OFFSET_INDEX_SUFFIX: OffsetIndex.entry_size, TIME_INDEX_SUFFIX: TimeIndex.entry_size}


class FileIdentity(NamedTuple):
    """Which file a name stood for: compaction puts another one under the same name."""

    device: int
    inode: int


class NoLogDirError(Exception):
    """The path names nothing that a broker keeps its log in."""


class LogDirectory:
    """A log directory, as it is when this is made. Nothing is written, nothing locked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files = ReadOnlyFiles()
        try:
            names = [entry.name for entry in self._files.scan(path)]
        except OSError as error:
            raise NoLogDirError(f"{path} cannot be read as a log directory: {error.strerror}") from None
        keys = [key for name in names if (key := parse_partition_directory(name)) and key[0] != RAFT_METADATA]
        if not keys and META_PROPERTIES not in names:
            raise NoLogDirError(f"{path} is no log directory: there is no partition in it, and no {META_PROPERTIES}")
        self.partitions = sorted(TopicPartition(*key) for key in keys)
        self._was_clean = CLEAN_SHUTDOWN in names
        self._high_watermarks = OffsetCheckpoint(self._files, path, HIGH_WATERMARKS).read()
        self._starts = OffsetCheckpoint(self._files, path, LOG_START_OFFSETS).read()

    def open(self, partition: TopicPartition) -> PartitionLog:
        """The log of one of `partitions`. Raises OSError, which is `FileNotFoundError` if it changes just now."""
        directory = f"{self.path}/{partition_directory(*partition)}"
        high_watermark = self._high_watermarks.get(partition)
        start_offset = self._starts.get(partition, 0)
        return PartitionLog(partition, directory, start_offset, high_watermark, was_clean=self._was_clean)


class PartitionLog:
    """One partition: its segments, the offset that it starts with, and the one that it ends before.

    `readable_size`: the bytes of the last segment that should be whole batches; with `ends_by_offset` only those below
    `end_offset` are promised to be. `last_end`: the offset behind the last whole batch. `is_cut_short`: the log ends in
    order, and below the high watermark, so the end of it was lost. `identities`: by base offset, the file of each log.
    """

    def __init__(
        self,
        partition: TopicPartition,
        directory: str,
        start_offset: int,
        high_watermark: int | None,
        *,
        was_clean: bool,
    ) -> None:
        self.partition = partition
        self.directory = directory
        self._files = ReadOnlyFiles()
        self._descriptors = DescriptorCache(self._files)
        sizes = {entry.name: entry.size for entry in self._files.scan(directory) if not entry.is_directory}
        self.identities: dict[int, FileIdentity] = {}
        segments = [self._segment(offset, sizes, ending) for offset, ending in _segments_in(sizes)]
        if not segments:
            raise FileNotFoundError(errno.ENOENT, "no segment is in it", directory)
        self.segments = Segments(segments)
        self.start_offset = max(start_offset, self.segments.first.base_offset)
        active = self.segments.active
        file_size = active.size
        active.log.size, self.last_end = _end_of(active)
        # Behind the last whole batch is damage, unless somebody may just be writing there.
        self.readable_size = active.size if high_watermark is None and not was_clean else file_size
        self.is_cut_short = self.last_end < (high_watermark or 0) and active.size == file_size
        self.ends_by_offset = high_watermark is not None and not was_clean
        end_offset = high_watermark if high_watermark is not None and not was_clean else self.last_end
        self.end_offset = max(end_offset, self.start_offset)
        with suppress(CorruptBatchError):
            active.indexes.find_largest_timestamp()  # the time index of a log that is written to says less
        self._snapshots = sorted(
            parsed[0] for name in sizes if (parsed := parse_file_name(name)) and parsed[1] == SNAPSHOT_SUFFIX
        )

    def last_stable_offset(self) -> int:
        """Where the first transaction begins that is not ended below `end_offset`; that, without one."""
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
            pass  # what cannot be read is decided by nobody; whoever reads that far finds it
        return max(self.start_offset, min([self.end_offset, *open_since.values()]))

    def _open_transactions(self) -> tuple[dict[int, int], int]:
        """The producers within transactions, with the first offsets of these, at an offset as late as is known."""
        for offset in reversed(self._snapshots):
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

    def _segment(self, base_offset: int, sizes: dict[str, int], ending: str) -> Segment:
        own = {}
        for suffix in SEGMENT_SUFFIXES:
            name = file_name(base_offset, suffix) + ending
            if name in sizes:
                path = f"{self.directory}/{name}"
                if suffix == LOG_SUFFIX:
                    status = Path(path).stat()  # one look for both, as it may be another file than the one listed
                    self.identities[base_offset] = file_identity(status)
                    sizes[name] = status.st_size
                own[suffix] = _used_bytes(self._files, path, sizes[name], _ENTRY_SIZES.get(suffix))
        return Segment(
            self.directory, base_offset, self._descriptors, LogConfig(), sizes=own, created_ms=0, ending=ending
        )


def file_identity(status: os.stat_result) -> FileIdentity:
    return FileIdentity(status.st_dev, status.st_ino)


def offset_index(log_path: str) -> OffsetIndex:
    """The offset index beside a segment's log, as it is. Raises OSError if there is none."""
    stem, _, ending = log_path.rpartition(LOG_SUFFIX)
    path = f"{stem}{OFFSET_INDEX_SUFFIX}{ending}"
    files = ReadOnlyFiles()
    size = _used_bytes(files, path, Path(path).stat().st_size, OffsetIndex.entry_size)
    return OffsetIndex(path, int(Path(stem).name), DescriptorCache(files), size, size)


def _segments_in(sizes: dict[str, int]) -> list[tuple[int, str]]:
    """Base offset and ending (none, or `.swap`) of the files that are the log's segments now."""
    names = [(offset, suffix) for name in sizes if (parsed := parse_file_name(name)) for offset, suffix in [parsed]]
    first_unfinished = min((offset for offset, suffix in names if suffix.endswith(CLEANED_SUFFIX)), default=None)
    swapped = sorted(
        offset
        for offset, suffix in names
        if suffix == LOG_SUFFIX + SWAP_SUFFIX and (first_unfinished is None or offset < first_unfinished)
    )
    kept = sorted(offset for offset, suffix in names if suffix == LOG_SUFFIX and offset not in swapped)
    return sorted([(offset, "") for offset in kept] + [(offset, SWAP_SUFFIX) for offset in swapped])


def _used_bytes(files: ReadOnlyFiles, path: str, size: int, entry_size: int | None) -> int:
    """The bytes of an index that have entries; behind those of an active segment are zeros."""
    if entry_size is None or not size:
        return size
    descriptor = files.open(path)
    try:
        low, high = 0, size // entry_size
        while low < high:
            middle = (low + high) // 2
            if any(files.pread(descriptor, entry_size, middle * entry_size)):
                low = middle + 1
            else:
                high = middle
    finally:
        files.close(descriptor)
    return size if low == size // entry_size else low * entry_size


def _end_of(segment: Segment) -> tuple[int, int]:
    """The bytes of whole batches in the segment, and the offset behind the last one."""
    size, next_offset = 0, segment.base_offset
    try:
        for batch in segment.log.batches(segment.indexes.offsets.last().position):
            size, next_offset = batch.position + batch.size, batch.last_offset + 1
    except CorruptBatchError:
        pass
    return size, next_offset
