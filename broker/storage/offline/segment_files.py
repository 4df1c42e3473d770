"""The files of a segment that a broker may be writing: their identity, and how many of their bytes are in use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.index.index_file import IndexFile
from odradek.broker.storage.index.offset_index import OffsetIndex
from odradek.broker.storage.index.time_index import TimeIndex
from odradek.broker.storage.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX

_INDEXES: Final[dict[str, type[IndexFile]]] = {OFFSET_INDEX_SUFFIX: OffsetIndex, TIME_INDEX_SUFFIX: TimeIndex}


class FileIdentity(NamedTuple):
    """Device and inode of a file: compaction puts another file under the same name."""

    device: int
    inode: int


def status_of(path: str) -> os.stat_result:
    """The status of a file. Raises `OSError`."""
    return os.stat(path)  # noqa: PTH116 - a Path costs more than the call, and this is called for every segment


def file_identity(status: os.stat_result) -> FileIdentity:
    return FileIdentity(status.st_dev, status.st_ino)


def read_offset_index(log_path: str, descriptors: DescriptorCache) -> OffsetIndex:
    """The offset index beside a segment's log, unchecked. Raises `OSError` if there is none."""
    stem, _, ending = log_path.rpartition(LOG_SUFFIX)
    path = f"{stem}{OFFSET_INDEX_SUFFIX}{ending}"
    size = used_bytes(ReadOnlyFiles(), path, OFFSET_INDEX_SUFFIX, status_of(path).st_size)
    return OffsetIndex(path, int(Path(stem).name), descriptors, size, size)


def used_bytes(files: Files, path: str, suffix: str, size: int) -> int:
    """The bytes of an index that hold entries; zeros follow them in an active segment. Of other files, all."""
    index = _INDEXES.get(suffix)
    if index is None or not size:
        return size
    entry_size = index.entry_size
    descriptor = files.open(path)
    try:
        low, high = 0, size // entry_size
        if any(files.pread(descriptor, entry_size, size - size % entry_size - entry_size)):
            return size  # most indexes are full: the broker cuts them when it rolls or stops
        while low < high:
            middle = (low + high) // 2
            if any(files.pread(descriptor, entry_size, middle * entry_size)):
                low = middle + 1
            else:
                high = middle
    finally:
        files.close(descriptor)
    return size if low == size // entry_size else low * entry_size
