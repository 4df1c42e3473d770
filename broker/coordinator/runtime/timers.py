"""The timers of one key. Setting a timer again, which is frequent, is cheap; expiring is rare.

A heartbeat moves the end of a session by a few seconds. That costs one entry in a dictionary: the clock's timer stays
where it is, and is set again when it fires too early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from odradek.broker.coordinator.runtime.events import TimerKey
from odradek.broker.waiting import Timer, Timers


class KeyTimers:
    """Calls `expired(timer)` once for each timer that was set and neither set again nor cancelled since.

    That event may have to wait while its key is busy, and the timer may be set again or cancelled meanwhile:
    `take_due` returns whether it still counts.
    """

    __slots__ = ("_deadlines", "_due", "_expired", "_handles", "_timers")

    def __init__(self, timers: Timers, expired: Callable[[TimerKey], None]) -> None:
        self._timers = timers
        self._expired = expired
        self._deadlines: dict[TimerKey, float] = {}
        self._handles: dict[TimerKey, Timer] = {}
        self._due: set[TimerKey] = set()

    def set(self, timer: TimerKey, delay_ms: int) -> None:
        """Make the timer expire in `delay_ms`, whatever it was set to before."""
        self._due.discard(timer)
        deadline = self._timers.time() + delay_ms / 1000
        before = self._deadlines.get(timer)
        self._deadlines[timer] = deadline
        if before is None or before > deadline:
            self._arm(timer, deadline)

    def cancel(self, timer: TimerKey) -> None:
        """Cancel the timer, if it is set."""
        self._due.discard(timer)
        if self._deadlines.pop(timer, None) is not None:
            self._handles.pop(timer).cancel()

    def take_due(self, timer: TimerKey) -> bool:
        """Return whether the timer has expired and was neither set again nor cancelled since; true only once."""
        is_due = timer in self._due
        self._due.discard(timer)
        return is_due

    def expire(self, timer: TimerKey) -> None:
        """Let the timer expire now, if it is set."""
        if self._deadlines.pop(timer, None) is not None:
            self._handles.pop(timer).cancel()
            self._due.add(timer)
            self._expired(timer)

    def postpone(self, timers: Iterable[TimerKey], seconds: float) -> None:
        """Give those of the timers that are set so much more time."""
        for timer in timers:
            if timer in self._deadlines:
                self._deadlines[timer] += seconds

    def remaining(self, timer: TimerKey) -> float | None:
        """Return the seconds until the timer expires, None if it is not set."""
        deadline = self._deadlines.get(timer)
        return None if deadline is None else deadline - self._timers.time()

    def cancel_all(self) -> None:
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
        self._deadlines.clear()
        self._due.clear()

    def _arm(self, timer: TimerKey, deadline: float) -> None:
        handle = self._handles.get(timer)
        if handle is not None:
            handle.cancel()
        self._handles[timer] = self._timers.call_at(deadline, self._fire, timer, deadline)

    def _fire(self, timer: TimerKey, armed_for: float) -> None:
        deadline = self._deadlines[timer]
        # A loop may be early. A clock that is being moved is not, and its time is the end of the move then.
        if armed_for < deadline or self._timers.time() < deadline:
            del self._handles[timer]
            self._arm(timer, deadline)
            return
        del self._deadlines[timer], self._handles[timer]
        self._due.add(timer)
        self._expired(timer)
