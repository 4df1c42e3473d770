"""The clock seam: the only place in the broker that reads the machine's time.

`time_ms` is wall-clock time for what people and records see (timestamps, retention); it may jump. `monotonic` is for
everything that measures or waits: it never goes back and has no meaning across processes. The simulated side is
`odradek.broker.testing.clock.ManualClock`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """Where the time comes from."""

    def time_ms(self) -> int:
        """Return wall-clock time in milliseconds since the epoch (UTC)."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    # The C function itself: it is read at least once a request, and a Python frame around it costs more than it does.
    monotonic = staticmethod(time.monotonic)

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000


def boot_id() -> str:
    """Return what tells this run of the operating system from others, or "" where nothing does.

    While it stays the same, so does the page cache: a process that was killed has lost nothing that it wrote.
    """
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
