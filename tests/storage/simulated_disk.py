"""A disk in memory that loses power: unsynced changes may be lost, in any combination, synced ones never.

The fault model, for everything since the last sync of the same file or directory:

| operation                        | after a killed process | after a power cut                                      |
|----------------------------------|------------------------|--------------------------------------------------------|
| write, truncate                  | done                   | each done or not, a later one also without an earlier  |
| the write that was interrupted   | any first part of it   | any first part of it, or nothing                       |
| create, rename, remove of a name | done                   | the first so many of a directory done, the rest not    |
| synced                           | done                   | done                                                   |

What was not written before something that was is zeros. Names are lost in order only, as file systems with a journal
have it; a file whose name was synced and whose bytes were not may be empty. `stop_at` makes the disk stop
at its n-th change, sync or not: `PowerCutError` is raised there and ever after. `fail_at` makes the n-th one fail with
EIO, a write half-way, and those after it succeed: what a disk does that is about to die. `fail_read_at` is the same for
reading.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable

from odradek.broker.storage.disk.files import BytesLike, FileEntry, Volume


class PowerCutError(BaseException):
    """The machine stops here. No `except Exception` may catch it."""


class File:
    """A file's bytes as the process sees them, as they are on the disk for certain, and what happened in between."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = bytes(data)
        self.pending: list[Callable[[bytearray], None]] = []

    def apply(self, change: Callable[[bytearray], None]) -> None:
        change(self.data)
        self.pending.append(change)

    def sync(self) -> None:
        self.synced = bytes(self.data)
        self.pending.clear()

    def after_power_cut(self, chance: random.Random) -> File:
        data = bytearray(self.synced)
        for change in self.pending:
            if chance.random() < 0.5:
                change(data)
        return File(bytes(data))


class Directory:
    """Names, as `File` has bytes."""

    def __init__(self) -> None:
        self.names: dict[str, File | Directory] = {}
        self.synced: dict[str, File | Directory] = {}
        self.pending: list[dict[str, File | Directory]] = []  # the names after each change

    def change(self, change: Callable[[dict[str, File | Directory]], object]) -> None:
        change(self.names)
        self.pending.append(dict(self.names))

    def sync(self) -> None:
        self.synced = dict(self.names)
        self.pending.clear()

    def after_power_cut(self, chance: random.Random) -> Directory:
        states = [self.synced, *self.pending]
        return self._copy(chance.choice(states), lambda entry: entry.after_power_cut(chance))

    def after_kill(self) -> Directory:
        return self._copy(self.names, lambda e: e.after_kill() if isinstance(e, Directory) else File(bytes(e.data)))

    @staticmethod
    def _copy(names: dict[str, File | Directory], copy: Callable[[File | Directory], File | Directory]) -> Directory:
        fresh = Directory()
        fresh.names = {name: copy(entry) for name, entry in names.items()}
        fresh.synced = dict(fresh.names)
        return fresh


class SimulatedFiles:
    """The `Files` of `root`, where paths are absolute. `operations` counts the changes and syncs, `reads` the reads."""

    def __init__(
        self,
        root: Directory | None = None,
        stop_at: int | None = None,
        seed: int = 0,
        fail_at: int | None = None,
        fail_read_at: int | None = None,
    ) -> None:
        self.root = root or Directory()
        self.operations = 0
        self.reads = 0
        self.stop_at = stop_at
        self.fail_at = fail_at
        self.fail_read_at = fail_read_at
        self.on_stop: Callable[[], None] | None = None  # called at `stop_at`
        self._chance = random.Random(seed)
        self._open: dict[int, File] = {}
        self._next_descriptor = 3
        self._lock: int | None = None

    def after_power_cut(self, seed: int) -> Directory:
        return self.root.after_power_cut(random.Random(seed))

    def after_kill(self) -> Directory:
        return self.root.after_kill()

    def _step(self) -> None:
        """Count an operation; the one that `stop_at` names does not happen, nor any later one."""
        self.operations += 1
        if self.stop_at is not None and self.operations >= self.stop_at:
            if self.operations == self.stop_at and self.on_stop is not None:
                self.on_stop()
            raise PowerCutError
        if self.operations == self.fail_at:
            raise _disk_error()

    def _read(self) -> None:
        self.reads += 1
        if self.reads == self.fail_read_at:
            raise _disk_error()

    def _directory(self, path: str) -> Directory:
        here = self.root
        for part in path.strip("/").split("/"):
            entry = here.names.get(part) if part else here
            if not isinstance(entry, Directory):
                raise FileNotFoundError(path)
            here = entry
        return here

    def _parent(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent), name

    def _file(self, path: str) -> File:
        directory, name = self._parent(path)
        entry = directory.names.get(name)
        if not isinstance(entry, File):
            raise FileNotFoundError(path)
        return entry

    # ------------------------------------------------------------------------------------------------------------ Files

    def open(self, path: str, *, create: bool = False) -> int:
        if create:
            directory, name = self._parent(path)
            if name in directory.names:
                raise FileExistsError(path)
            self._step()
            directory.change(lambda names: names.__setitem__(name, File()))
        return self._descriptor(self._file(path))

    def _descriptor(self, file: File) -> int:
        self._next_descriptor += 1
        self._open[self._next_descriptor] = file
        return self._next_descriptor

    def close(self, descriptor: int) -> None:
        del self._open[descriptor]
        if descriptor == self._lock:
            self._lock = None

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        self._read()
        return bytes(self._open[descriptor].data[position : position + length])

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        file, written = self._open[descriptor], bytes(data)
        try:
            self._step()
        except (PowerCutError, OSError):
            if self.operations in (self.stop_at, self.fail_at):
                file.apply(writing(written[: self._chance.randrange(len(written) + 1)], position))
            raise
        file.apply(writing(written, position))

    def truncate(self, descriptor: int, size: int) -> None:
        self._step()
        self._open[descriptor].apply(_truncating(size))

    def size(self, descriptor: int) -> int:
        return len(self._open[descriptor].data)

    def modified_ms(self, descriptor: int) -> int:
        return 0

    def set_modified_ms(self, descriptor: int, time_ms: int) -> None:
        """Times are not kept: nothing that has a timestamp of its own goes by them."""

    def fsync(self, descriptor: int) -> None:
        self._step()
        self._open[descriptor].sync()

    def drop_cached(self, descriptor: int, position: int, length: int) -> None:
        """Nothing: what is in memory is all there is."""

    def fsync_directory(self, path: str) -> None:
        self._step()
        self._directory(path).sync()

    def volume(self, path: str) -> Volume:
        return Volume(1 << 30, 1 << 29)

    def scan(self, path: str) -> list[FileEntry]:
        return [
            FileEntry(name, 0 if isinstance(entry, Directory) else len(entry.data), 0, isinstance(entry, Directory))
            for name, entry in self._directory(path).names.items()
        ]

    def read(self, path: str) -> bytes:
        file = self._file(path)
        self._read()
        return bytes(file.data)

    def exists(self, path: str) -> bool:
        try:
            directory, name = self._parent(path)
        except FileNotFoundError:
            return False
        return not name or name in directory.names

    def rename(self, source: str, target: str) -> None:
        (directory, old), (same, new) = self._parent(source), self._parent(target)
        assert directory is same, "the log renames within a directory only"
        if old not in directory.names:
            raise FileNotFoundError(source)
        self._step()
        directory.change(lambda names: names.__setitem__(new, names.pop(old)))

    def remove(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.names:
            self._step()
            directory.change(lambda names: names.pop(name))

    def make_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if name not in directory.names:
            self._step()
            directory.change(lambda names: names.__setitem__(name, Directory()))

    def remove_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.names:
            self._step()
            directory.change(lambda names: names.pop(name))

    def lock(self, path: str) -> int:
        if self._lock is not None:
            raise BlockingIOError(path)
        self._lock = self.open(path, create=not self.exists(path))
        return self._lock


def _disk_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def writing(data: bytes, position: int) -> Callable[[bytearray], None]:
    """Return the change of a file that a write makes."""

    def change(target: bytearray) -> None:
        if len(target) < position:
            target.extend(bytes(position - len(target)))
        target[position : position + len(data)] = data

    return change


def _truncating(size: int) -> Callable[[bytearray], None]:
    def change(target: bytearray) -> None:
        del target[size:]
        target.extend(bytes(size - len(target)))

    return change
