"""The timers of one key on the event loop. Setting a timer again, which is frequent, is cheap; expiring is rare.

A heartbeat moves the end of a session by a few seconds. That costs one entry in a dictionary: the loop's timer stays
where it is, and is set again when it fires too early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.coordinator.runtime.events import TimerKey


class KeyTimers:
    """Calls `expired(timer)` once for each timer that was set and neither set again nor cancelled since.

    That event may have to wait while its key is busy, and the timer may be set again or cancelled meanwhile:
    `take_due` returns whether it still counts.
    """

    __slots__ = ("_deadlines", "_due", "_expired", "_handles", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[TimerKey], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._deadlines: dict[TimerKey, float] = {}
        self._handles: dict[TimerKey, asyncio.TimerHandle] = {}
        self._due: set[TimerKey] = set()

    def set(self, timer: TimerKey, delay_ms: int) -> None:
        """Make the timer expire in `delay_ms`, whatever it was set to before."""
        self._due.discard(timer)
        deadline = self._loop.time() + delay_ms / 1000
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
        self._handles[timer] = self._loop.call_at(deadline, self._fire, timer)

    def _fire(self, timer: TimerKey) -> None:
        deadline = self._deadlines[timer]
        if self._loop.time() < deadline:
            del self._handles[timer]
            self._arm(timer, deadline)
            return
        del self._deadlines[timer], self._handles[timer]
        self._due.add(timer)
        self._expired(timer)
