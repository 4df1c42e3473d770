"""Shadows over the `Files` of a log directory: four methods of the object are hidden by attributes of the object.

Without shadows the attributes are gone, and the files cost what they always cost. Something else, such as a trace, may
put shadows over these: then they stay when they are removed, and only pass calls through.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from odradek.broker.storage.disk.files import BytesLike, Files
from odradek.broker.testing.faults.disk_rules import READ, SYNC, WRITE, NoSpaceError

_LONGEST_PATH: Final = 1024
"""Of F_GETPATH (macOS)."""

Meet = Callable[[str, Callable[[], str], int], None]
"""Called before an operation with its kind, a function that finds the path, and the size. Raises OSError."""
Method = Callable[..., Any]


class ShadowedFiles:
    """One object with its shadows, from the creation to `remove`. Operations come from several threads."""

    def __init__(self, files: Files, meet: Meet) -> None:
        self._meet = meet
        self._attributes = vars(files)
        self._shadows: dict[str, Method] = {
            "pwrite": partial(self._pwrite, files.pwrite),
            "pread": partial(self._pread, files.pread),
            "fsync": partial(self._fsync, files.fsync),
            "fsync_directory": partial(self._fsync_directory, files.fsync_directory),
        }
        self._before = {name: self._attributes.get(name) for name in self._shadows}
        self._attributes.update(self._shadows)

    def remove(self) -> None:
        """Give the object its methods back."""
        self._meet = _nothing
        for name, shadow in self._shadows.items():
            if self._attributes.get(name) is not shadow:
                continue
            before = self._before[name]
            if before is None:
                del self._attributes[name]
            else:
                self._attributes[name] = before

    def _pwrite(self, original: Method, descriptor: int, data: BytesLike, position: int) -> None:
        try:
            self._meet(WRITE, partial(path_of, descriptor), len(data))
        except NoSpaceError as error:
            original(descriptor, memoryview(data)[: error.room], position)
            raise
        original(descriptor, data, position)

    def _pread(self, original: Method, descriptor: int, length: int, position: int) -> bytes:
        self._meet(READ, partial(path_of, descriptor), length)
        data: bytes = original(descriptor, length, position)
        return data

    def _fsync(self, original: Method, descriptor: int) -> None:
        if not _is_directory(descriptor):  # as `fsync_directory` calls `fsync`, it would count twice
            self._meet(SYNC, partial(path_of, descriptor), 0)
        original(descriptor)

    def _fsync_directory(self, original: Method, path: str) -> None:
        self._meet(SYNC, lambda: path, 0)
        original(path)


def path_of(descriptor: int) -> str:
    """The path of an open file, "" for one that the operating system does not know."""
    try:
        if sys.platform == "darwin":
            return fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(_LONGEST_PATH)).rstrip(b"\0").decode()
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return ""


def _is_directory(descriptor: int) -> bool:
    try:
        return stat.S_ISDIR(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _nothing(operation: str, path_of: Callable[[], str], size: int) -> None:
    """Change nothing, for shadows that were removed."""
