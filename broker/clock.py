"""The clock seam: the only place in the broker that reads the machine's time.

`time_ms` is wall-clock time for what people and records see (timestamps, retention); it may jump. `monotonic` is for
everything that measures or waits: it never goes back and has no meaning across processes. The simulated side is
`broker.testing.clock.ManualClock`.
"""

from __future__ import annotations

import time
from typing import Protocol


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
