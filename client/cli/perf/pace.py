"""A steady rate of sending."""

from __future__ import annotations

import asyncio
import time

_SHORTEST_SLEEP = 0.001  # seconds; the loop's timers are no finer


class Pace:
    """The times at which records are due: `rate` a second from now on; with a rate of 0 or less, always now."""

    def __init__(self, rate: float) -> None:
        self.is_bounded = rate > 0
        self._rate = rate
        self._began = time.monotonic()
        self._number = 0

    async def next(self) -> float:
        """Wait until the next record is due, and return that time (`time.monotonic`).

        Latencies count from that time: a record that is sent late because earlier ones were delayed has waited, too.
        """
        now = time.monotonic()
        if not self.is_bounded:
            return now
        due = self._began + self._number / self._rate
        self._number += 1
        if due - now >= _SHORTEST_SLEEP:
            await asyncio.sleep(due - now)
        return min(due, time.monotonic())
