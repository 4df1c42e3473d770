"""Time that freezegun and time-machine cannot freeze.

Both replace functions of Python's module `time`: freezegun in the modules that have imported them, time-machine in
C, so that a reference taken before the replacement does not help. They leave `clock_gettime(CLOCK_MONOTONIC)` alone,
and the C library's functions, which have no Python object.
"""

from __future__ import annotations

import ctypes
import os
from time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_gettime = ctypes.CDLL(None, use_errno=True).clock_gettime
_gettime.argtypes = (ctypes.c_int, ctypes.POINTER(_Timespec))


def monotonic() -> float:
    """Return the seconds of the machine's monotonic clock."""
    return clock_gettime(CLOCK_MONOTONIC)


def time_ms() -> int:
    """Return the machine's wall-clock time in milliseconds since the epoch (UTC)."""
    now = _Timespec()
    if _gettime(CLOCK_REALTIME, now):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(now.seconds) * 1000 + int(now.nanoseconds) // 1_000_000
