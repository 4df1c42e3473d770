"""A bounded cache of open files, so that ten thousand idle partitions hold no descriptor.

All files of all logs are opened here. `pin` opens a file or finds it open, and keeps it open until the matching
`unpin`. Unpinned files stay open until there are more than `capacity`; then the least recently used one is closed.
`forget` drops a file that was renamed or removed: it is closed with its last pin, so a slice that is being sent
survives the removal of its segment (POSIX keeps the bytes of an open file).

When the process or the system has no descriptor left, unpinned files are closed and the call is retried.
`retrying_files`, which open, scan and sync everything else in the log directory, do the same; `files` is that file
system without retries.

Safe for several threads: the loop reads while a writer thread appends and another syncs. A descriptor may be used only
while pinned; after it is closed, its number may belong to another file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple

from odradek.broker.storage.disk.disk_errors import is_exhausted
from odradek.broker.storage.disk.files import Files, create_file
from odradek.broker.storage.disk.retrying_files import RetryingFiles

DEFAULT_CAPACITY: Final = 500  # half of the usual soft limit of 1,024 descriptors; sockets get the other half
_ROOM: Final = 32  # files closed at a time when no descriptor is left: more than one is needed soon


class Block(NamedTuple):
    """The bytes of neighbouring entries of an index from slot `start` on, in one `edition` of the index."""

    edition: Any  # compared by identity; mypyc makes no field of type `object`
    start: int
    data: bytes


class Descriptor:
    """One open file. `number` is valid while `pins` is above zero.

    `blocks` are the parts of an index that stay in memory while its file is open: so the open files bound them.
    """

    __slots__ = ("blocks", "number", "path", "pins", "retained")

    def __init__(self, number: int, path: str) -> None:
        self.number = number
        self.path = path
        self.pins = 0
        self.retained = True
        self.blocks: tuple[Block, ...] = ()


class DescriptorCache:
    """The open files of a log directory: at most `capacity`, and the pinned ones."""

    def __init__(self, files: Files, capacity: int = DEFAULT_CAPACITY) -> None:
        self.files = files
        self.retrying_files: Files = RetryingFiles(files, self.make_room)
        self._capacity = capacity
        self._open: OrderedDict[str, Descriptor] = OrderedDict()
        self._lock = Lock()
        # Every append and read pins and unpins: `with` would take twice as long as these two, 0.15 µs.
        self._acquire = self._lock.acquire
        self._release = self._lock.release

    def __len__(self) -> int:
        return len(self._open)

    def paths(self) -> dict[int, str]:
        """Return the paths of the open files by descriptor."""
        with self._lock:
            return {descriptor.number: path for path, descriptor in self._open.items()}

    def pin(self, path: str) -> Descriptor:
        """Open `path` for reading and writing, or find it open, and keep it open. Raises `OSError`."""
        self._acquire()
        try:
            descriptor = self._open.get(path)
            if descriptor is None:
                descriptor = self._open_file(path)
            else:
                self._open.move_to_end(path)
            descriptor.pins += 1
            return descriptor
        finally:
            self._release()

    def unpin(self, descriptor: Descriptor) -> None:
        """Undo one `pin`; exactly once each."""
        self._acquire()
        try:
            descriptor.pins -= 1
            if not descriptor.pins:
                if not descriptor.retained:
                    self.files.close(descriptor.number)
                elif len(self._open) > self._capacity:
                    self._evict(len(self._open) - self._capacity)
        finally:
            self._release()

    @contextmanager
    def pinned(self, path: str) -> Iterator[int]:
        """Pin a file for the block; yields its number. Raises `OSError`.

        Appends and reads for a Fetch call `pin` and `unpin` themselves, which takes 1 µs less.
        """
        descriptor = self.pin(path)
        try:
            yield descriptor.number
        finally:
            self.unpin(descriptor)

    def create(self, path: str) -> None:
        """Create an empty file, instead of one left from before a crash, and keep it open as if it had been used."""
        number = create_file(self.retrying_files, path)
        with self._lock:
            replaced = self._open.pop(path, None)
            if replaced is not None:  # a reader opened an older file just before its removal
                self._drop(replaced)
            self._evict(len(self._open) + 1 - self._capacity)
            self._open[path] = Descriptor(number, path)

    def forget(self, path: str) -> None:
        """Close `path` once it is unpinned, and never return this open file again."""
        with self._lock:
            descriptor = self._open.pop(path, None)
            if descriptor is not None:
                self._drop(descriptor)

    def rename(self, source: str, target: str) -> None:
        """Rename a file. A later `pin` of either path opens what is there then; pinned files stay open.

        The lock is not held meanwhile: a file system that is busy with a sync takes long, and every append pins.
        """
        self._forget_both(source, target)
        self.files.rename(source, target)
        self._forget_both(source, target)  # another thread may have opened the old file

    def make_room(self) -> bool:
        """Close some unpinned files; return False if there are none."""
        with self._lock:
            return self._evict(_ROOM) > 0

    def close(self) -> None:
        """Close every unpinned file; pinned ones are closed when they are unpinned."""
        with self._lock:
            for descriptor in self._open.values():
                self._drop(descriptor)
            self._open.clear()

    def _open_file(self, path: str) -> Descriptor:
        self._evict(len(self._open) + 1 - self._capacity)
        descriptor = self._open[path] = Descriptor(self._open_number(path), path)
        return descriptor

    def _open_number(self, path: str) -> int:
        while True:
            try:
                return self.files.open(path)  # with the lock held, which `make_room` takes
            except OSError as error:
                if not is_exhausted(error) or not self._evict(_ROOM):
                    raise

    def _forget_both(self, source: str, target: str) -> None:
        self.forget(source)
        self.forget(target)

    def _drop(self, descriptor: Descriptor) -> None:
        if descriptor.pins:
            descriptor.retained = False
        else:
            self.files.close(descriptor.number)

    def _evict(self, excess: int) -> int:
        """Close up to `excess` unpinned files, least recently used first; return how many."""
        victims = []
        for path, descriptor in self._open.items():
            if excess <= 0:
                break
            if not descriptor.pins:
                victims.append(path)
                excess -= 1
        for path in victims:
            self.files.close(self._open.pop(path).number)
        return len(victims)
