"""A lock that keeps two jobs from writing to one output at a time.

It is `flock` on `_OUTPUT.lock` beside the directory, which the system releases if a job is killed; the file is deleted
at the end. So it works for directories of this machine, and of network file systems that have such locks. Outputs in
other file systems (HDFS, object stores), mount points, and directories beside which nothing can be written are not
locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.pipeline.jobs import JobError


@contextmanager
def locked(output: str) -> Iterator[None]:
    """Lock a local directory, which need not exist, for the `with`. Raises `JobError` if another job has locked it."""
    directory = Path(output).resolve()
    if directory.is_mount():
        yield
        return
    path = directory.with_name(f"_{directory.name}.lock")
    descriptor = _lock(path, output)
    try:
        yield
    finally:
        if descriptor is not None:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def _lock(path: Path, output: str) -> int | None:
    """Return the descriptor that has the lock, None if there cannot be one."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError:
            return None  # the directory above is read-only, for example
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise JobError(f"another job writes to {output}: run this one when it has ended") from None
        except OSError:
            os.close(descriptor)
            return None  # the file system has no locks
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # the job that had it deleted the file meanwhile
