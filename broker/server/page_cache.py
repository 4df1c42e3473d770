"""Is a part of a file in memory? Sending a cold part would block the event loop for as long as the disk takes.

A probe reads one byte of every 512 KiB and the last one, and asks the kernel not to wait for it (preadv2 with
RWF_NOWAIT, Linux): 1 µs a probe. Pages of a log go in the order in which they came, so what is missing is at an end of
a range: at its beginning, which has grown old, or behind what a read-ahead of 128 KiB has brought. A gap in between
costs a wait for the disk. Where the kernel or the file system cannot say, everything counts as cached.
"""

from __future__ import annotations

import errno
import os

_PROBE_STEP = 512 * 1024
_LOAD_STEP = 128 * 1024  # the usual read-ahead
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


def is_cached(file: int, position: int, count: int) -> bool:
    """Whether `count` bytes (more than 0) from `position` can be read without waiting for the disk."""
    if not _NOWAIT:
        return True
    byte = [bytearray(1)]
    last = position + count - 1
    try:
        for probe in range(position, last, _PROBE_STEP):
            os.preadv(file, byte, probe, _NOWAIT)
        os.preadv(file, byte, last, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
    return True


def load(file: int, position: int, count: int) -> None:
    """Read a part of a file into memory, waiting for the disk; for a thread."""
    end = position + count
    while position < end:
        read = len(os.pread(file, min(_LOAD_STEP, end - position), position))
        if not read:
            return
        position += read
