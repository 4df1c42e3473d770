"""Links and copies of files, made by the kernel where it can. Paths are strings, as in `storage.disk.files`."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

_CHUNK: Final = 1 << 20
_FEW: Final = 1 << 16
"""Up to so many bytes are read and written: two calls, and a copy by the kernel takes as many."""
_NOT_BY_KERNEL: Final = frozenset({errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF})


def link_or_copy(source: str, target: str) -> None:
    """Make `target`, which does not exist, a link to `source`; a copy on a file system where that is impossible."""
    try:
        os.link(source, target)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError:  # another file system, one without links, or too many links
        copy(source, target)


def copy(source: str, target: str) -> None:
    """Copy a file as a whole, with its mode; holes stay holes, which take no space."""
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(reading)
        size = status.st_size
        writing = _create(target, stat.S_IMODE(status.st_mode))
        try:
            for start, end in _data_ranges(reading, size):
                _copy_range(reading, writing, start, end)
            os.ftruncate(writing, size)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def copy_up_to(source: str, target: str, size: int, tail: bytes = b"") -> None:
    """Copy the first `size` bytes of a file to `target`, which does not exist, and put `tail` behind them."""
    writing = _create(target)
    try:
        if size:
            reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _copy_range(reading, writing, 0, size)
            finally:
                os.close(reading)
        if tail:
            os.pwrite(writing, tail, size)
    finally:
        os.close(writing)


def write(target: str, data: bytes) -> None:
    """Create `target`, which does not exist, with `data`."""
    copy_up_to("", target, 0, data)


def make_directory(path: str) -> None:
    """Create a directory, which does not exist."""
    os.mkdir(path)


def is_linked(path: str) -> bool:
    """Whether the file has another name, so that a change of it in place would change what has that name."""
    return os.stat(path).st_nlink > 1


def _create(path: str, mode: int = 0o644) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def _copy_range(reading: int, writing: int, start: int, end: int) -> None:
    if end - start > _FEW and hasattr(os, "copy_file_range"):
        try:
            while start < end and (count := os.copy_file_range(reading, writing, end - start, start, start)):
                start += count
        except OSError as error:
            if error.errno not in _NOT_BY_KERNEL:
                raise
    while start < end and (data := os.pread(reading, min(end - start, _CHUNK), start)):
        start += os.pwrite(writing, data, start)


def _data_ranges(reading: int, size: int) -> list[tuple[int, int]]:
    """The ranges of a file that are no holes; all of it where the system cannot tell."""
    ranges = []
    position = 0
    while position < size:
        try:
            start = os.lseek(reading, position, os.SEEK_DATA)
            position = os.lseek(reading, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which means: no data from here on
                ranges.append((position, size))
            break
        ranges.append((start, position))
    return ranges
