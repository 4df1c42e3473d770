"""The clock of a broker on a thread, for tests without an event loop.

```python
with ThreadedBroker() as broker:
    BlockingClock(broker).advance(hours=2)
```
"""

from __future__ import annotations

from datetime import timedelta

from odradek.broker.testing.members import expire_member
from odradek.broker.testing.movable_clock import MovableClock
from odradek.broker.testing.threaded import ThreadedBroker

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class BlockingClock:
    """Moves the clock of a broker that runs. All methods may be called on any thread except the broker's."""

    def __init__(self, threaded: ThreadedBroker) -> None:
        """Raises TypeError if the broker has another clock than a `MovableClock`."""
        clock = threaded.broker.clock
        if not isinstance(clock, MovableClock):
            raise TypeError(f"a {type(clock).__name__} cannot be moved forward: give the broker a MovableClock")
        self._threaded = threaded
        self._clock = clock

    def advance(self, delta: timedelta | None = None, /, **arguments: float) -> None:
        """Move the clock forward, and return when what was due is done; see `MovableClock.advance`."""
        self._threaded.run(self._clock.advance(delta, **arguments))

    def expire_member(self, group_id: str, client_id: str) -> None:
        """End the sessions of the group's members with that client id now; see `members.expire_member`."""
        self._threaded.run(expire_member(self._threaded.broker, group_id, client_id))

    def time_ms(self) -> int:
        """Return the broker's wall-clock time in milliseconds since the epoch (UTC)."""
        return self._clock.time_ms()
