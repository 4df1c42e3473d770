"""A bound on the lines that clients cause: for each of them, and for all together, in spans of ten seconds.

```
                 allows("User:a")                    the span's end
lines written ────────────────────► counted ──────────────────────► dropped("User:a", 12345), once for each client
lines beyond  ────────────────────► counted                         dropped("others", 678), beyond MOST_NAMED clients
```

The memory is bounded, too: a client is counted only for a line that was written, or as one of `MOST_NAMED` that lost
lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from odradek.broker.clock import Clock

SPAN_SECONDS: Final = 10.0
MOST_NAMED: Final = 20
"""The clients whose dropped lines are counted by name in a span, which are as many lines more."""
OTHERS: Final = "others"


class LineLimits:
    """Allows `of_one` lines of a client and `of_all` lines in a span, and calls `dropped` with clients and counts."""

    def __init__(self, clock: Clock, of_one: int, of_all: int, dropped: Callable[[str, int], None]) -> None:
        self._clock = clock
        self._of_one = of_one
        self._of_all = of_all
        self._report = dropped
        self._since = clock.monotonic()
        self._written: Counter[str] = Counter()
        self._total = 0
        self._dropped: Counter[str] = Counter()

    def allows(self, client: str, events: int = 1) -> bool:
        """Return whether a line about a client may be written, and count it; a dropped one stands for `events`."""
        self.tick()
        if self._total < self._of_all and self._written[client] < self._of_one:
            self._total += 1
            self._written[client] += 1
            return True
        named = client in self._dropped or len(self._dropped) < MOST_NAMED
        self._dropped[client if named else OTHERS] += events
        return False

    def tick(self) -> None:
        """Report what was dropped in a span that has ended. To be called every few seconds."""
        if self._clock.monotonic() >= self._since + SPAN_SECONDS:
            self.end_span()

    def end_span(self) -> None:
        """Report what was dropped, and begin the next span. To be called when the broker stops."""
        dropped, self._dropped = self._dropped, Counter()
        self._since, self._total = self._clock.monotonic(), 0
        self._written.clear()
        for client, count in dropped.items():
            self._report(client, count)
