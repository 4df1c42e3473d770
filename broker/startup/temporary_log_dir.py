"""The temporary log directory of an embedded broker, in memory if there is room.

| the directory is removed | when |
|---|---|
| by `remove` | the broker is closed, or its first start fails |
| by the interpreter | the broker is garbage, or the process exits |
| by the next broker in memory | the process was killed: nobody holds the lock of the directory |

The lock is held as long as the directory exists, also while its broker is stopped. It is a lock of the directory
itself; the file `.lock` in it is the broker's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path

from odradek.broker.storage.names import LOCK

MEMORY = Path("/dev/shm")  # noqa: S108 - `mkdtemp` makes a directory that nobody else can open
LEAST_MEMORY_BYTES = 1 << 30
"""The space that must be free in `MEMORY`. A container has 64 MiB there by default."""

_PREFIX = "odradek-"
_ABANDONED_SECONDS = 60


class TemporaryLogDir:
    """A new directory, `path`, until `remove`. TMPDIR overrides the choice of its place.

    The files of a group's 50 partitions are removed in 8 ms in memory, on a disk in 30 to 100.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock: int | None = None
        if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            return
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=MEMORY))
        self._lock = _try_lock(self.path)
        remove_abandoned(MEMORY, self.path.stat().st_mtime)
        if shutil.disk_usage(MEMORY).free < LEAST_MEMORY_BYTES:
            self.remove()
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))

    def create_again(self) -> None:
        """Create the directory, empty, if it was removed."""
        if not self.path.exists():
            self.path.mkdir(mode=0o700)
            if self.path.parent == MEMORY:
                self._lock = _try_lock(self.path)

    def remove(self) -> None:
        """Remove the directory with all files. A forked process that inherited this object removes nothing."""
        if os.getpid() != self._process:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned(parent: Path, now: float) -> None:
    """Remove the directories of embedded brokers in `parent` whose processes were killed.

    `now` is the modification time of a file just made there: a test may have frozen the clock of its process.
    """
    for directory in parent.glob(f"{_PREFIX}*"):
        try:
            if now - directory.stat().st_mtime < _ABANDONED_SECONDS:
                continue  # perhaps not locked yet
            lock = _try_lock(directory)
            if lock is not None:
                try:
                    _remove_if_unused(directory)
                finally:
                    os.close(lock)
        except OSError:
            continue  # of another user, or removed meanwhile


def _remove_if_unused(directory: Path) -> None:
    """Remove it, unless a broker of an earlier version uses it: those lock only their own file. Raises OSError."""
    path = directory / LOCK
    with path.open("rb") if path.exists() else nullcontext() as lock:
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory)


def _try_lock(directory: Path) -> int | None:
    """Lock a directory and return the descriptor; None if another process holds it. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
