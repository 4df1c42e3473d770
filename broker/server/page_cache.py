"""The check whether a part of a file is in memory.

Sending a part that is not in memory would block the event loop until the disk has read it.

A probe reads one byte of every 512 KiB, and the last byte, without waiting (preadv2 with RWF_NOWAIT, Linux): 1 µs a
probe. The kernel evicts the pages of a log in the order of their age, so missing pages are at an end of a range: at its
start, which is oldest, or after the pages that a read-ahead of 128 KiB has loaded. A gap in between costs one wait for
the disk. If the kernel or the file system does not support the probe, everything counts as cached.
"""

from __future__ import annotations

import errno
import os

_PROBE_STEP = 512 * 1024
_LOAD_STEP = 128 * 1024  # the usual read-ahead
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


def is_cached(file: int, position: int, count: int) -> bool:
    """Return whether `count` bytes (more than 0) from `position` can be read without waiting for the disk."""
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
    """Read a part of a file into memory. It waits for the disk, so it runs on a thread."""
    end = position + count
    while position < end:
        read = len(os.pread(file, min(_LOAD_STEP, end - position), position))
        if not read:
            return
        position += read
