"""The clock seam: the only place in the broker that reads the machine's time.

`time_ms` is wall-clock time for people and records (timestamps, retention); it may jump. `monotonic` is for measuring
and waiting: it never goes back, and has no meaning in another process. `boot_time` also counts the time for which the
machine sleeps: a lease in a remote store expires meanwhile. The simulated sides are in `odradek.broker.testing`:
`ManualClock`, which a test sets, and `MovableClock`, which goes on and can be moved forward. `waiting` has the timers.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

# Only Linux has CLOCK_BOOTTIME; on macOS CLOCK_MONOTONIC does not stop either.
_BOOT_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """A source of time."""

    def time_ms(self) -> int:
        """Return wall-clock time in milliseconds since the epoch (UTC)."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...

    def boot_time(self) -> float:
        """Return seconds on a clock that never goes back, and does not stop while the machine sleeps."""
        ...


class SystemClock:
    """The machine's clocks."""

    # The C function itself: it runs at least once in each request, and a Python frame costs more than it does.
    monotonic = staticmethod(time.monotonic)

    def boot_time(self) -> float:
        return time.clock_gettime(_BOOT_TIME)

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000


def boot_id() -> str:
    """Return an id of this run of the operating system, or "" if there is none.

    While it is the same, the page cache has survived: a process that was killed has lost nothing that it wrote.
    """
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
