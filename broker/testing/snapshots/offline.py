"""Copies of a log directory that no broker uses, for `odradek snapshot`: of this broker's, and of Apache Kafka's.

Every file is copied, none is linked: a broker that starts on a directory may repair its files in place, and the copy
may go to another machine. Not copied are the lock, and files that await their removal. Preallocated files stay sparse.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import (
    DELETED_SUFFIX,
    LOCK,
    META_PROPERTIES,
    is_deleted_directory,
    parse_partition_directory,
)
from odradek.broker.storage.offline.directory_lock import is_locked
from odradek.broker.testing.snapshots import file_copies
from odradek.broker.testing.snapshots.log_dir_copy import clear

_NOT_COPIED = frozenset({LOCK, f"{FILE_NAME}-shm"})


class Copied(NamedTuple):
    """What was copied: partitions, and bytes of all files."""

    partitions: int
    bytes: int


def save(log_dir: Path, directory: Path) -> Copied:
    """Copy a log directory to `directory`, which does not exist or is empty.

    Raises `LogDirRefusedError` if `log_dir` is no log directory or in use, or if `directory` holds files; `OSError`.
    """
    _check_log_dir(log_dir)
    if directory.exists() and any(directory.iterdir()):
        raise LogDirRefusedError(f"{directory} is not empty")
    with _unused(log_dir):
        directory.mkdir(parents=True, exist_ok=True)
        return _copy(log_dir, directory)


def load(directory: Path, log_dir: Path) -> Copied:
    """Make `log_dir` a copy of `directory`, which `save` has made. What the log directory held is removed.

    Raises `LogDirRefusedError` if `directory` is no snapshot, or if `log_dir` is in use or holds anything but logs;
    `OSError`.
    """
    _check_log_dir(directory)
    if log_dir.exists() and any(log_dir.iterdir()):
        _check_log_dir(log_dir)
    log_dir.mkdir(parents=True, exist_ok=True)
    with _unused(log_dir):
        clear(log_dir)
        return _copy(directory, log_dir)


def _check_log_dir(path: Path) -> None:
    names = [each.name for each in path.iterdir()]
    if META_PROPERTIES not in names and not any(map(parse_partition_directory, names)):
        raise LogDirRefusedError(f"{path} is no log directory: it has neither {META_PROPERTIES} nor partitions")


@contextmanager
def _unused(log_dir: Path) -> Iterator[None]:
    """Keep brokers away from a log directory. Raises `LogDirRefusedError` if one uses it."""
    files = OsFiles()
    in_use = LogDirRefusedError(f"a broker is using the log directory {log_dir}")
    if is_locked(str(log_dir)):  # a broker of Apache Kafka takes another lock
        raise in_use
    try:
        lock = files.lock(f"{log_dir}/{LOCK}")
    except BlockingIOError:
        raise in_use from None
    try:
        yield
    finally:
        files.close(lock)


def _copy(source: Path, target: Path) -> Copied:
    """Copy the contents, the identity last: an interrupted copy is refused by brokers."""
    partitions = size = 0
    entries = sorted(source.iterdir(), key=lambda each: (each.name == META_PROPERTIES, each.name))
    for entry in entries:
        if entry.name in _NOT_COPIED or is_deleted_directory(entry.name):
            continue
        if entry.is_dir():
            partitions += parse_partition_directory(entry.name) is not None
            size += _copy_directory(entry, target / entry.name)
        else:
            size += _copy_file(entry, target / entry.name)
    return Copied(partitions, size)


def _copy_directory(source: Path, target: Path) -> int:
    target.mkdir()
    return sum(_copy_file(each, target / each.name) for each in source.iterdir() if not _awaits_removal(each))


def _awaits_removal(path: Path) -> bool:
    return path.name.endswith(DELETED_SUFFIX) or path.is_dir()


def _copy_file(source: Path, target: Path) -> int:
    file_copies.copy(str(source), str(target))
    status = source.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))  # retention may go by it
    return min(status.st_size, status.st_blocks * 512)
