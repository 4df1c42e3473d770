"""The clock of a test's broker, for tests with and without an event loop; `MovableClock` says what a move does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from odradek.broker.testing.blocking_clock import BlockingClock
from odradek.testing.blocking import check_no_loop, in_thread

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class KafkaClock:
    """`kafka.clock`. Its methods block, so on a thread with a running event loop they raise RuntimeError."""

    def __init__(self, clock: Callable[[], BlockingClock]) -> None:
        self._clock = clock

    def advance(self, delta: timedelta | None = None, /, **arguments: float) -> None:
        """Move the broker's clock forward, by a `timedelta` or by its arguments (`hours=2`).

        Returns when what was due by then is done. Raises ValueError if the time is negative.
        """
        check_no_loop("clock.advance")
        self._clock().advance(delta, **arguments)

    def expire_member(self, group: str, client_id: str) -> None:
        """End the sessions of the members of a group with this client id now, as if they had been silent.

        Raises ValueError, with those that exist, for an unknown group or client id.
        """
        check_no_loop("clock.expire_member")
        self._clock().expire_member(group, client_id)

    def time_ms(self) -> int:
        """Return the broker's wall-clock time in milliseconds since the epoch (UTC)."""
        return self._clock().time_ms()


class AsyncKafkaClock:
    """`kafka.aio.clock`: the methods of `KafkaClock`, to be awaited."""

    def __init__(self, clock: Callable[[], BlockingClock]) -> None:
        self._clock = clock

    async def advance(self, delta: timedelta | None = None, /, **arguments: float) -> None:
        """See `KafkaClock.advance`."""
        await in_thread(self._clock().advance, delta, **arguments)

    async def expire_member(self, group: str, client_id: str) -> None:
        """See `KafkaClock.expire_member`."""
        await in_thread(self._clock().expire_member, group, client_id)

    def time_ms(self) -> int:
        """Return the broker's wall-clock time in milliseconds since the epoch (UTC)."""
        return self._clock().time_ms()
