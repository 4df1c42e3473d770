"""A bounded cache of open files, so that ten thousand idle partitions hold no descriptor.

Every file of every log is reached through here. `pin` opens a file or finds it open, and keeps it open until the
matching `unpin`; unpinned files stay open until more than `capacity` are, and then the one unused for longest is
closed. `forget` drops a file that was renamed or removed: it is closed once nobody has it pinned, so a slice that is
being sent survives the removal of its segment (POSIX keeps the bytes of an open file).

Where no descriptor is left, whoever holds them, unpinned files are closed, and it is tried again. `retrying_files`,
which open, scan and sync all else of the log directory, do the same; `files` are that file system without it.

Safe for several threads: the loop reads while a writer thread appends and another syncs. A descriptor may be used only
while pinned; its number belongs to another file the moment it is closed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple

from odradek.broker.storage.disk.disk_errors import is_exhausted
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.disk.retrying_files import RetryingFiles

DEFAULT_CAPACITY: Final = 500  # half of the usual soft limit of 1,024 descriptors; sockets get the other half
_ROOM: Final = 32  # files closed at a time where no descriptor is left: some for others than who asks


class Block(NamedTuple):
    """The bytes of neighbouring entries of an index from slot `start` on, as they were in this `edition` of it."""

    edition: Any  # an object of its own; mypyc makes no field of type `object`
    start: int
    data: bytes


class Descriptor:
    """One open file. `number` is valid while `pins` is above zero.

    `blocks` are what an index keeps in memory of its file, a few, for as long as that is open: so the open files bound
    them.
    """

    __slots__ = ("blocks", "number", "path", "pins", "retained")

    def __init__(self, number: int, path: str) -> None:
        self.number = number
        self.path = path
        self.pins = 0
        self.retained = True
        self.blocks: tuple[Block, ...] = ()


class DescriptorCache:
    """The open files of a log directory, at most `capacity` of them besides those that are pinned."""

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

    def pin(self, path: str) -> Descriptor:
        """Open `path` for reading and writing, or find it open, and keep it open; `OSError` if it cannot be opened."""
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
        """Give back what `pin` gave, exactly once."""
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
        """The number of the open file, which stays open for as long as the block; `OSError` if it cannot be opened.

        Appends and reads for a Fetch call `pin` and `unpin` themselves, which takes 1 µs less.
        """
        descriptor = self.pin(path)
        try:
            yield descriptor.number
        finally:
            self.unpin(descriptor)

    def create(self, path: str) -> None:
        """Make an empty file, which must not exist, and keep it open as if it had been used."""
        number = self.retrying_files.open(path, create=True)
        with self._lock:
            replaced = self._open.pop(path, None)
            if replaced is not None:  # a reader opened the file that was there before, just as it was removed
                self._drop(replaced)
            self._evict(len(self._open) + 1 - self._capacity)
            self._open[path] = Descriptor(number, path)

    def forget(self, path: str) -> None:
        """Close `path` when it is no longer pinned, and never give out this open file again."""
        with self._lock:
            descriptor = self._open.pop(path, None)
            if descriptor is not None:
                self._drop(descriptor)

    def rename(self, source: str, target: str) -> None:
        """Rename a file. Who pins either path afterwards gets what is there then; what is pinned now stays open.

        The lock is not held meanwhile: a file system that is busy with a sync takes its time, and every append pins.
        """
        self._forget_both(source, target)
        self.files.rename(source, target)
        self._forget_both(source, target)  # somebody may have opened what was there before

    def make_room(self) -> bool:
        """Close some files that are not pinned; False if there are none."""
        with self._lock:
            return self._evict(_ROOM) > 0

    def close(self) -> None:
        """Close every file that is not pinned; pinned ones close as they are unpinned."""
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
        """Close `excess` unpinned files, least recently used first, or as many as there are; return how many."""
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
