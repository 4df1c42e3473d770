"""The logs of a directory that a broker may be writing, as their files are at one moment.

| value | source |
|---|---|
| the partitions | `listing` |
| where a partition starts | `log-start-offset-checkpoint`, or its first segment |
| where it ends | after a clean stop, behind its last batch; else the high watermark, `replication-offset-checkpoint` |
| where it ends, without a high watermark | before the first batch that is not whole |
| the last stable offset | the newest snapshot of producers, and the batches behind it |

A checkpoint is some seconds old, so the last seconds of a running broker are not seen; what is seen is complete. Unlike
`stored_log_dir`, this repairs nothing and reads no records, so a reader of the bytes meets any damage.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import Final, NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint, Partition
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.index.index_file import IndexFile
from odradek.broker.storage.index.offset_index import OffsetIndex
from odradek.broker.storage.index.time_index import TimeIndex
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from odradek.broker.storage.offline.listing import PartitionFiles, list_partitions
from odradek.broker.storage.producers.producer_snapshots import CorruptSnapshotError, decode_snapshot
from odradek.broker.storage.producers.producer_state import NO_OFFSET
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments

_INDEXES: Final[dict[str, type[IndexFile]]] = {OFFSET_INDEX_SUFFIX: OffsetIndex, TIME_INDEX_SUFFIX: TimeIndex}


class FileIdentity(NamedTuple):
    """Device and inode of a file: compaction puts another file under the same name."""

    device: int
    inode: int


def file_identity(status: os.stat_result) -> FileIdentity:
    return FileIdentity(status.st_dev, status.st_ino)


class LiveLogDir:
    """A log directory as it is when this object is made. Nothing is written, nothing is locked."""

    def __init__(self, path: str) -> None:
        """Raises `OSError` if the directory cannot be read, `NoLogDirError` if it is no log directory."""
        self.path = path
        self._files = ReadOnlyFiles()
        # Before the files are listed: a later stop or checkpoint promises more than was seen.
        self._was_clean = self._files.exists(f"{path}/{CLEAN_SHUTDOWN}")
        self._high_watermarks = OffsetCheckpoint(self._files, path, HIGH_WATERMARKS).read()
        self._starts = OffsetCheckpoint(self._files, path, LOG_START_OFFSETS).read()
        self._names = {partition.key: partition.name for partition in list_partitions(self._files, path)}

    @property
    def partitions(self) -> list[Partition]:
        return sorted(self._names)

    def open(self, partition: Partition) -> LiveLog:
        """Open the log of one of `partitions`. Raises `OSError`, `FileNotFoundError` if it changes meanwhile."""
        files = PartitionFiles(self._files, self.path, self._names[partition], partition)
        high_watermark = self._high_watermarks.get(partition)
        return LiveLog(files, self._starts.get(partition, 0), high_watermark, was_clean=self._was_clean)


class LiveLog:
    """One partition: its segments, its start offset (inclusive) and its end offset (exclusive).

    `readable_size`: the bytes of the last segment that should be whole batches; with `ends_by_offset` only those below
    `end_offset` are promised to be. `last_end`: the offset behind the last whole batch. `is_cut_short`: the log ends
    with a whole batch, below the high watermark, so its end was lost. `identities`: the file of each log, by base
    offset.
    """

    def __init__(
        self, files: PartitionFiles, start_offset: int, high_watermark: int | None, *, was_clean: bool
    ) -> None:
        self.partition = files.key
        self.directory = files.path
        self._snapshots = files.snapshots
        self._files = ReadOnlyFiles()
        self._descriptors = DescriptorCache(self._files)
        self.identities: dict[int, FileIdentity] = {}
        segments = [self._segment(files, base_offset) for base_offset in files.logs]
        if not segments:
            raise FileNotFoundError(ENOENT, "no segment is in it", self.directory)
        self.segments = Segments(segments)
        self.start_offset = max(start_offset, self.segments.first.base_offset)
        active = self.segments.active
        file_size = active.size
        active.log.size, self.last_end = _end_of(active)
        # Behind the last whole batch is damage, unless a broker may be writing there.
        self.readable_size = active.size if high_watermark is None and not was_clean else file_size
        self.is_cut_short = self.last_end < (high_watermark or 0) and active.size == file_size
        self.ends_by_offset = high_watermark is not None and not was_clean
        end_offset = high_watermark if high_watermark is not None and not was_clean else self.last_end
        self.end_offset = max(end_offset, self.start_offset)
        with suppress(CorruptBatchError):
            active.indexes.find_largest_timestamp()  # the time index of a log that is being written lacks its end

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

    def _segment(self, files: PartitionFiles, base_offset: int) -> Segment:
        sizes = {}
        for suffix, listed_size in files.segments[base_offset].items():
            path, size = files.path_of(base_offset, suffix), listed_size
            if suffix == LOG_SUFFIX:
                status = Path(path).stat()  # identity and size in one call: another file may have the name by now
                self.identities[base_offset] = file_identity(status)
                size = status.st_size
            sizes[suffix] = used_bytes(self._files, path, suffix, size)
        ending = files.ending(base_offset)
        return Segment(
            self.directory, base_offset, self._descriptors, LogConfig(), sizes=sizes, created_ms=0, ending=ending
        )


def read_offset_index(log_path: str) -> OffsetIndex:
    """The offset index beside a segment's log, unchecked. Raises `OSError` if there is none."""
    stem, _, ending = log_path.rpartition(LOG_SUFFIX)
    path = f"{stem}{OFFSET_INDEX_SUFFIX}{ending}"
    files = ReadOnlyFiles()
    size = used_bytes(files, path, OFFSET_INDEX_SUFFIX, Path(path).stat().st_size)
    return OffsetIndex(path, int(Path(stem).name), DescriptorCache(files), size, size)


def used_bytes(files: ReadOnlyFiles, path: str, suffix: str, size: int) -> int:
    """The bytes of an index that hold entries; zeros follow them in an active segment. Of other files, all."""
    index = _INDEXES.get(suffix)
    if index is None or not size:
        return size
    entry_size = index.entry_size
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
        offsets = segment.indexes.offsets
    except CorruptBatchError:  # while a missing index was being rebuilt; it has the entries up to the damage
        offsets, _ = segment.indexes.files
    try:
        for batch in segment.log.batches(offsets.last().position):
            size, next_offset = batch.position + batch.size, batch.last_offset + 1
    except CorruptBatchError:
        pass
    return size, next_offset
