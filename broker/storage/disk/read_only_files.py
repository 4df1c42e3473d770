"""A `Files` that never changes the disk: written data stays in memory, and is read from there.

So the same code opens a directory, with the same result, as when a broker starts on it, and yet its files keep every
byte and every modification time: recovery, rebuilt indexes, completed swaps and the formatting of an empty directory
all happen in memory. The lock is not taken.

```
path ─┬─ not touched ──────────────► the file on the disk, opened for reading
      ├─ made shorter ─────────────► its first bytes: still the file on the disk, so `sendfile` works
      ├─ written, made, renamed to ► a Content in memory, with a negative descriptor that only this class uses
      └─ removed ──────────────────► FileNotFoundError
```

The output of recovery is held in memory: indexes, snapshots and checkpoints, about a 500th of the segments that it
reads. Adding to a file that has bytes on the disk, as an append to a log does, raises EROFS, and so does the renaming
of a directory.

One thread may use it while the directory is opened; afterwards several threads may read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from threading import RLock

from odradek.broker.storage.disk.files import BytesLike, FileEntry, OsFiles, Volume

_FIRST_DESCRIPTOR = -2  # and down from there; -1 stands for errors


class _Content:
    """A file. While `path` is set its bytes are the first `size` of that file, else `data` and zeros up to `size`."""

    __slots__ = ("data", "path", "size")

    def __init__(self, path: str | None, size: int) -> None:
        self.path = path
        self.size = size
        self.data = bytearray()

    def truncate(self, size: int) -> None:
        if self.path is not None and 0 < size <= self.size:
            self.size = size
            return
        if self.path is not None and size:
            raise _refusal(self.path)
        self.path = None
        self.size = size
        del self.data[size:]

    def write(self, data: BytesLike, position: int) -> None:
        if self.path is not None:
            raise _refusal(self.path)
        self.data.extend(bytes(max(0, position - len(self.data))))
        self.data[position : position + len(data)] = data
        self.size = max(self.size, len(self.data))

    def read(self, length: int, position: int) -> bytes:
        length = max(0, min(length, self.size - position))
        found = bytes(self.data[position : position + length])
        return found + bytes(length - len(found))


class ReadOnlyFiles:
    """The disk and the changes to it in memory; see the module. Implements `Files`."""

    def __init__(self) -> None:
        self._disk = OsFiles()
        self._changed: dict[str, dict[str, _Content | None]] = {}  # by directory and name; None: removed
        self._made_directories: set[str] = set()
        self._removed_directories: set[str] = set()
        self._open: dict[int, _Content] = {}
        self._next_descriptor = _FIRST_DESCRIPTOR
        self._lock = RLock()  # the descriptor cache opens and closes files for several threads

    # ------------------------------------------------------------------------------------------------------------ files

    def open(self, path: str, *, create: bool = False) -> int:
        with self._lock:
            if create:
                if self.exists(path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                self._change(path, _Content(None, 0))
            content = self._find(path)
            if content.path is None:
                descriptor = self._next_descriptor
                self._next_descriptor -= 1
            else:
                descriptor = os.open(content.path, os.O_RDONLY | os.O_CLOEXEC)
            self._open[descriptor] = content
            return descriptor

    def close(self, descriptor: int) -> None:
        with self._lock:
            del self._open[descriptor]
            if descriptor >= 0:
                os.close(descriptor)

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        content = self._open[descriptor]
        if content.path is None:
            return content.read(length, position)
        return self._disk.pread(descriptor, max(0, min(length, content.size - position)), position)

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        self._open[descriptor].write(data, position)

    def truncate(self, descriptor: int, size: int) -> None:
        self._open[descriptor].truncate(size)

    def size(self, descriptor: int) -> int:
        return self._open[descriptor].size

    def modified_ms(self, descriptor: int) -> int:
        return 0 if self._open[descriptor].path is None else self._disk.modified_ms(descriptor)

    def set_modified_ms(self, descriptor: int, time_ms: int) -> None:
        """Do nothing: the files keep their times."""

    def fsync(self, descriptor: int) -> None:
        """Do nothing: memory is not synced."""

    def drop_cached(self, descriptor: int, position: int, length: int) -> None:
        """Do nothing: the page cache belongs to the users of the directory."""

    def fsync_directory(self, path: str) -> None:
        """Do nothing, as `fsync`."""

    # ------------------------------------------------------------------------------------------------------------ names

    def volume(self, path: str) -> Volume:
        return self._disk.volume(path)

    def scan(self, path: str) -> list[FileEntry]:
        changed = self._changed.get(path, {})
        found = [] if path in self._made_directories else self._disk.scan(path)
        entries = [
            entry
            for entry in found
            if entry.name not in changed and f"{path}/{entry.name}" not in self._removed_directories
        ]
        entries += [
            FileEntry(name, content.size, 0, is_directory=False)
            for name, content in changed.items()
            if content is not None
        ]
        return entries + [FileEntry(name, 0, 0, is_directory=True) for name in self._directories_made_in(path)]

    def read(self, path: str) -> bytes:
        descriptor = self.open(path)
        try:
            return self.pread(descriptor, self.size(descriptor), 0)
        finally:
            self.close(descriptor)

    def exists(self, path: str) -> bool:
        directory, name = _split(path)
        if name in self._changed.get(directory, {}):
            return self._changed[directory][name] is not None
        if path in self._removed_directories:
            return False
        return path in self._made_directories or self._disk.exists(path)

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            if source in self._made_directories or os.path.isdir(source):
                raise _refusal(source)
            content = self._find(source)
            self._change(source, None)
            self._change(target, content)

    def remove(self, path: str) -> None:
        with self._lock:
            if self.exists(path):
                self._change(path, None)

    def make_directory(self, path: str) -> None:
        if not self.exists(path):
            self._made_directories.add(path)

    def remove_directory(self, path: str) -> None:
        self._made_directories.discard(path)
        self._removed_directories.add(path)
        self._changed.pop(path, None)

    def lock(self, path: str) -> int:
        """Open the lock file without locking it."""
        return self.open(path, create=not self.exists(path))

    def _find(self, path: str) -> _Content:
        directory, name = _split(path)
        changed = self._changed.get(directory, {})
        if name not in changed:
            # Kept from here on, so that the file stays as short as it was made.
            content: _Content | None = _Content(path, os.stat(path).st_size)
            self._change(path, content)
        else:
            content = changed[name]
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return content

    def _change(self, path: str, content: _Content | None) -> None:
        directory, name = _split(path)
        self._changed.setdefault(directory, {})[name] = content

    def _directories_made_in(self, path: str) -> Iterator[str]:
        for made in self._made_directories:
            directory, name = _split(made)
            if directory == path:
                yield name


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _refusal(path: str) -> OSError:
    return OSError(errno.EROFS, "the directory was opened for reading only", path)
