"""A `Files` that closes unused open files and retries when no descriptor is left.

`descriptors` keeps hundreds of files open that may not be needed soon. When the process or the system cannot open
another file (EMFILE, ENFILE), some of them are closed for a checkpoint, a snapshot or the scan of a directory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from odradek.broker.storage.disk.disk_errors import is_exhausted
from odradek.broker.storage.disk.files import BytesLike, FileEntry, Files, Volume

P = ParamSpec("P")
T = TypeVar("T")


class RetryingFiles:
    """`files`, with `make_room` called when no descriptor is left; it returns whether it closed any file.

    Implements `Files`.
    """

    def __init__(self, files: Files, make_room: Callable[[], bool]) -> None:
        self._files = files
        self._make_room = make_room

    def open(self, path: str, *, create: bool = False) -> int:
        return self._with_room(self._files.open, path, create=create)

    def fsync_directory(self, path: str) -> None:
        self._with_room(self._files.fsync_directory, path)

    def scan(self, path: str) -> list[FileEntry]:
        return self._with_room(self._files.scan, path)

    def read(self, path: str) -> bytes:
        return self._with_room(self._files.read, path)

    def remove_directory(self, path: str) -> None:
        self._with_room(self._files.remove_directory, path)

    def lock(self, path: str) -> int:
        return self._with_room(self._files.lock, path)

    # The others need no new descriptor.

    def close(self, descriptor: int) -> None:
        self._files.close(descriptor)

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        return self._files.pread(descriptor, length, position)

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        self._files.pwrite(descriptor, data, position)

    def truncate(self, descriptor: int, size: int) -> None:
        self._files.truncate(descriptor, size)

    def size(self, descriptor: int) -> int:
        return self._files.size(descriptor)

    def modified_ms(self, descriptor: int) -> int:
        return self._files.modified_ms(descriptor)

    def set_modified_ms(self, descriptor: int, time_ms: int) -> None:
        self._files.set_modified_ms(descriptor, time_ms)

    def fsync(self, descriptor: int) -> None:
        self._files.fsync(descriptor)

    def drop_cached(self, descriptor: int, position: int, length: int) -> None:
        self._files.drop_cached(descriptor, position, length)

    def volume(self, path: str) -> Volume:
        return self._files.volume(path)

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def rename(self, source: str, target: str) -> None:
        self._files.rename(source, target)

    def remove(self, path: str) -> None:
        self._files.remove(path)

    def make_directory(self, path: str) -> None:
        self._files.make_directory(path)

    def _with_room(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return function(*args, **kwargs)
            except OSError as error:
                if not is_exhausted(error) or not self._make_room():
                    raise
