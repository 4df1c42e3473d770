"""Sampled windows: a rate, or an average, of what was recorded lately.

```
 window 1      window 2               window 3, still filled
├───────┤     ├───────┤              ├────►
        first record after a window's end starts the next one: a pause leaves a gap
```

A window starts with the first record after the last window's end. It is dropped when its last record is `number`
windows old, so that one which overlaps the measured time counts as a whole. The rate divides by the time since the
start of the oldest window, but by `number - 1` windows at least: the first second of a client does not look like an
overload. These are Kafka's `SampledStat` and `Rate`; throttle times and dashboards depend on their numbers.

Times are monotonic seconds; the caller passes them in order. Memory: `number + 1` windows of three numbers.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Windows(NamedTuple):
    """`number` windows (at least 1) of `seconds` each: `quota.window.num` and `quota.window.size.seconds`."""

    number: int = 11
    seconds: float = 1.0

    @property
    def total(self) -> float:
        return self.number * self.seconds


class _Window:
    __slots__ = ("last", "records", "start", "value")

    def __init__(self, start: float) -> None:
        self.start = start
        self.last = start
        self.value = 0.0
        self.records = 0


class Samples:
    """The windows of one series of values."""

    __slots__ = ("_kept", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._kept: deque[_Window] = deque()

    def record(self, value: float, now: float) -> None:
        """Add a value, which may be negative: it takes back an earlier one."""
        kept = self._kept
        if not kept or now - kept[-1].start >= self.windows.seconds:
            kept.append(_Window(now))
            if len(kept) > self.windows.number + 1:
                kept.popleft()
        window = kept[-1]
        window.value += value
        window.records += 1
        window.last = now

    def total(self, now: float) -> float:
        """Return the sum of the values in the windows that count."""
        self._drop_old(now)
        return sum(window.value for window in self._kept)

    def average(self, now: float) -> float:
        """Return the mean of the values in the windows that count; 0 if there are none."""
        total = self.total(now)
        records = sum(window.records for window in self._kept)
        return total / records if records else 0.0

    def span(self, now: float) -> float:
        """Return the seconds that `rate` divides by; see the module."""
        self._drop_old(now)
        elapsed = now - self._kept[0].start if self._kept else 0.0
        missing = self.windows.number - 1 - int(elapsed / self.windows.seconds)
        if missing > 0:
            elapsed += missing * self.windows.seconds
        return max(elapsed, 0.001)

    def rate(self, now: float) -> float:
        """Return the values recorded per second."""
        return self.total(now) / self.span(now)

    def _drop_old(self, now: float) -> None:
        kept, oldest = self._kept, now - self.windows.total
        while kept and kept[0].last <= oldest:
            kept.popleft()
