"""The rules for the disk: which operations each fits, and what it does to them.

| operation | what counts as one |
|---|---|
| write | `Files.pwrite`: records, index entries, checkpoints |
| sync | `Files.fsync` and `Files.fsync_directory`, also where the files of a temporary directory skip them |
| read | `Files.pread`, and each part of a file that answers a Fetch (`sendfile`) |

Operations come from several threads, so a rule has a lock around its counts. `meet` is called before each operation.
"""

from __future__ import annotations

import errno
import os
from fnmatch import fnmatchcase
from pathlib import PurePath
from threading import Lock
from typing import Final

from odradek.broker.testing.faults import arguments
from odradek.broker.testing.faults.rule import Rule
from odradek.protocol.plural import pluralize

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

WRITE: Final = "write"
SYNC: Final = "sync"
READ: Final = "read"
OPERATIONS: Final = (WRITE, SYNC, READ)


class DiskRule(Rule):
    """A rule for operations on files. `path` is a pattern of a path or a name, or a partition such as `orders-0`."""

    def __init__(self, action: str, operations: tuple[str, ...], path: str | None, *, optional: bool) -> None:
        super().__init__(action, optional=optional)
        self.operations = operations
        self._path = None if path is None else arguments.text("path", path)
        self._lock = Lock()

    @property
    def filters(self) -> dict[str, object]:
        return {"path": self._path}

    @property
    def needs_path(self) -> bool:
        return self._path is not None

    def fits(self, path: str) -> bool:
        """Whether the rule is for this file: the pattern fits its path, its name, or the name of its directory."""
        if self._path is None:
            return True
        file = PurePath(path)
        return any(fnmatchcase(name, self._path) for name in (path, file.name, file.parent.name))

    def meet(self, size: int) -> float:  # noqa: ARG002 - for those that differ
        """Count an operation on `size` bytes, and return the seconds that it takes longer. Raises OSError."""
        return 0.0


class DiskFull(DiskRule):
    """No space is left after some more bytes."""

    def __init__(self, after: int, path: str | None, *, optional: bool) -> None:
        self._left = arguments.whole_number("after", after, 0)
        super().__init__(f"fill the disk after {pluralize(after, 'byte')}", (WRITE,), path, optional=optional)

    def meet(self, size: int) -> float:
        with self._lock:
            if size <= self._left:
                self._left -= size
                return 0.0
            left, self._left = self._left, 0
            self.hits += 1
            raise NoSpaceError(left)


class NoSpaceError(OSError):
    """ENOSPC, before which the first `room` bytes of a write are written."""

    def __init__(self, room: int) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room = room


class IoError(DiskRule):
    """One operation fails: the nth from now on."""

    def __init__(self, on: str, nth: int, error: int | str, path: str | None, *, optional: bool) -> None:
        self._left = arguments.whole_number("nth", nth, 1)
        self._error = arguments.errno_named(error)
        operation = arguments.one_of("on", on, OPERATIONS)
        name = errno.errorcode[self._error]
        super().__init__(f"fail {operation} number {nth} with {name}", (operation,), path, optional=optional)

    def meet(self, size: int) -> float:  # noqa: ARG002 - every size fails alike
        with self._lock:
            self._left -= 1
            if self._left:
                return 0.0
            self.hits += 1
        raise OSError(self._error, os.strerror(self._error))


class SlowDisk(DiskRule):
    """Every operation takes longer."""

    def __init__(self, ms: float, on: str | None, path: str | None, *, optional: bool) -> None:
        self._seconds = arguments.duration("ms", ms) / 1000
        operations = OPERATIONS if on is None else (arguments.one_of("on", on, OPERATIONS),)
        what = "every operation" if on is None else f"every {on}"
        super().__init__(f"slow down {what} by {ms} ms", operations, path, optional=optional)

    def meet(self, size: int) -> float:  # noqa: ARG002 - every size takes as long
        with self._lock:
            self.hits += 1
        return self._seconds
