"""The seam to the disk: everything that the log needs from the operating system.

`broker/storage` uses `Files`; `OsFiles` is the real side; tests use a failing or a simulated disk instead. Paths are
strings, not `pathlib` objects: building a path object costs more than the call that uses it, and a broker opens
thousands of directories. Descriptors are plain integers, because `sendfile` and `fsync` need them.

Durability, as POSIX has it and as the callers rely on it:

| what must survive a power cut | what makes it so |
|---|---|
| bytes of a file               | `fsync` of the file |
| a file's name (create, rename, remove) | `fsync_directory` of the directory that holds the name |
| a whole small file, old or new and nothing between | `replace_file` |

A failed `fsync` leaves it unknown which bytes are on the disk, and clears the error, so a second call may succeed
without having written them. After such an error, callers must neither trust the file nor sync it again. So `fsync` and
`fsync_directory` report every failure of the sync itself as EIO, also one for lack of memory, which is transient
elsewhere (`disk_errors`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import sys
from typing import NamedTuple, Protocol

from odradek.broker.storage.names import DELETED_SUFFIX

BytesLike = bytes | bytearray | memoryview
_SCANS = 10  # tries, while another process changes the directory: a broker renames few files a second


class FileEntry(NamedTuple):
    """A name in a directory, with its size in bytes and its modification time (milliseconds since 1970)."""

    name: str
    size: int
    modified_ms: int
    is_directory: bool


class Volume(NamedTuple):
    """The size of a file system, and what of it this process may still use, in bytes."""

    total_bytes: int
    usable_bytes: int


class Files(Protocol):
    """The operations of a file system that the log needs. Every method raises `OSError`."""

    def open(self, path: str, *, create: bool = False) -> int:
        """Open for reading and writing; `create` makes an empty file and fails if there is one already."""
        ...

    def close(self, descriptor: int) -> None: ...

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        """Write all of `data`, or raise; what was written before the error stays in the file."""
        ...

    def truncate(self, descriptor: int, size: int) -> None:
        """Set the size: shorter cuts, longer adds zeros that take no space (a sparse file)."""
        ...

    def size(self, descriptor: int) -> int: ...

    def modified_ms(self, descriptor: int) -> int:
        """The modification time, in milliseconds since 1970."""
        ...

    def set_modified_ms(self, descriptor: int, time_ms: int) -> None:
        """Set the modification time."""
        ...

    def fsync(self, descriptor: int) -> None: ...

    def drop_cached(self, descriptor: int, position: int, length: int) -> None:
        """Drop these synced bytes from the page cache: they will not be read again."""
        ...

    def fsync_directory(self, path: str) -> None: ...

    def volume(self, path: str) -> Volume:
        """The file system of a directory."""
        ...

    def scan(self, path: str) -> list[FileEntry]:
        """The names in a directory, in no order. Follows symbolic links; omits dangling ones.

        Omits files that another process removes meanwhile, or renames to `.deleted`. Raises `FileNotFoundError` also
        if it gives files other names faster than the directory can be read.
        """
        ...

    def read(self, path: str) -> bytes:
        """The whole of a small file."""
        ...

    def exists(self, path: str) -> bool: ...

    def rename(self, source: str, target: str) -> None:
        """Atomically; a file at `target` is replaced."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; a missing file is no error."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory in an existing one; an existing directory is no error."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory and all in it; a missing directory is no error.

        Of a symbolic link only the link is removed, and links inside are not followed.
        """
        ...

    def lock(self, path: str) -> int:
        """Lock the file for this process and return its descriptor. Raises `BlockingIOError` if another holds it."""
        ...


class OsFiles:
    """The real file system."""

    def open(self, path: str, *, create: bool = False) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC
        return os.open(path, flags | os.O_CREAT | os.O_EXCL if create else flags, 0o644)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        data = os.pread(descriptor, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        got = len(data)
        while got < length and (data := os.pread(descriptor, length - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        written = os.pwrite(descriptor, data, position)
        if written == len(data):
            return
        rest = memoryview(data)
        while written < len(rest):
            written += os.pwrite(descriptor, rest[written:], position + written)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def size(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_size

    def modified_ms(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_mtime_ns // 1_000_000

    def set_modified_ms(self, descriptor: int, time_ms: int) -> None:
        os.utime(descriptor, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def fsync(self, descriptor: int) -> None:
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise OSError(errno.EIO, f"cannot sync: {error.strerror}") from error

    def drop_cached(self, descriptor: int, position: int, length: int) -> None:
        if sys.platform == "linux":
            os.posix_fadvise(descriptor, position, length, os.POSIX_FADV_DONTNEED)

    def fsync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.fsync(descriptor)
        finally:
            os.close(descriptor)

    def volume(self, path: str) -> Volume:
        found = os.statvfs(path)
        return Volume(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def scan(self, path: str) -> list[FileEntry]:
        for _ in range(_SCANS):
            entries = []
            missing: set[str] = set()
            dangling: set[str] = set()
            with os.scandir(path) as names:
                for entry in names:
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        (dangling if entry.is_symlink() else missing).add(entry.name)
                        continue
                    is_directory = stat.S_ISDIR(status.st_mode)
                    entries.append(FileEntry(entry.name, status.st_size, status.st_mtime_ns // 1_000_000, is_directory))
            if not missing:
                return entries
            # A missing file that was not removed has another name now, or a new file has taken its name.
            known = dangling.union(entry.name for entry in entries)
            if all(name in known or name.endswith(DELETED_SUFFIX) for name in os.listdir(path)):
                return entries
        raise FileNotFoundError(errno.ENOENT, "its files are renamed faster than they can be listed", path)

    def read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self.pread(descriptor, os.fstat(descriptor).st_size, 0)
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def remove_directory(self, path: str) -> None:
        try:
            if os.path.islink(path):  # which rmtree refuses
                os.unlink(path)
            else:
                shutil.rmtree(path)
        except FileNotFoundError:
            pass

    def lock(self, path: str) -> int:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


class UnsyncedFiles(OsFiles):
    """The real file system without syncs: for a directory that is removed when the broker stops.

    What a killed process has written stays, as with `OsFiles`. A power cut may lose all of it.
    """

    def fsync(self, descriptor: int) -> None:
        """Do nothing."""

    def fsync_directory(self, path: str) -> None:
        """Do nothing."""


def parent_of(path: str) -> str:
    parent, slash, _ = path.rstrip("/").rpartition("/")
    return parent or slash or "."


def make_directories(files: Files, path: str) -> None:
    """Create a directory and its missing parents so that they survive a power cut."""
    if not files.exists(path):
        parent = parent_of(path)
        make_directories(files, parent)
        files.make_directory(path)
        files.fsync_directory(parent)


def create_file(files: Files, path: str) -> int:
    """Create an empty file, instead of one left from before a crash, and return its descriptor. Raises `OSError`.

    The older file is removed, not emptied: a baseline of `broker.testing` may share it by a hard link. It is rare, so
    creating is tried first: removing a name that is not there costs as much.
    """
    try:
        return files.open(path, create=True)
    except FileExistsError:
        files.remove(path)
        return files.open(path, create=True)


def replace_file(files: Files, path: str, data: bytes, *, synced: bool = True) -> None:
    """Replace the contents of `path` with `data`, so that a crash at any point leaves the old contents or the new.

    As Kafka's checkpoints: `path.tmp` is written and synced, renamed over `path`, and the directory synced. With
    `synced` false, `sync_file` does that later; a power cut before it may leave an empty file.
    """
    temporary = f"{path}.tmp"
    descriptor = create_file(files, temporary)
    try:
        files.pwrite(descriptor, data, 0)
        if synced:
            files.fsync(descriptor)
    finally:
        files.close(descriptor)
    files.rename(temporary, path)
    if synced:
        files.fsync_directory(parent_of(path))


def sync_file(files: Files, path: str) -> None:
    """Sync the contents and the name of `path`."""
    descriptor = files.open(path)
    try:
        files.fsync(descriptor)
    finally:
        files.close(descriptor)
    files.fsync_directory(parent_of(path))
