"""The timers of one group on the event loop, made for being moved far more often than they expire.

A heartbeat moves a session's end by a few seconds. Moving it later costs one entry in a dictionary: the loop's timer
stays where it is, and finds when it fires that there is time left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.coordinator.group_type import TimerKey


class GroupTimers:
    """Calls `expired(key)` once for each timer that was set and not moved or cancelled since.

    What comes of that may have to wait while the group is busy, and the timer may be moved or cancelled meanwhile:
    `take_due` says whether it still counts.
    """

    __slots__ = ("_deadlines", "_due", "_expired", "_handles", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[TimerKey], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._deadlines: dict[TimerKey, float] = {}
        self._handles: dict[TimerKey, asyncio.TimerHandle] = {}
        self._due: set[TimerKey] = set()

    def set(self, key: TimerKey, delay_ms: int) -> None:
        """Let the timer expire in `delay_ms`, whatever it was set to."""
        self._due.discard(key)
        deadline = self._loop.time() + delay_ms / 1000
        before = self._deadlines.get(key)
        self._deadlines[key] = deadline
        if before is None or before > deadline:
            self._arm(key, deadline)

    def cancel(self, key: TimerKey) -> None:
        """Let the timer not expire; there may be none."""
        self._due.discard(key)
        if self._deadlines.pop(key, None) is not None:
            self._handles.pop(key).cancel()

    def take_due(self, key: TimerKey) -> bool:
        """Say, once, whether the timer has expired and was neither set nor cancelled since."""
        is_due = key in self._due
        self._due.discard(key)
        return is_due

    def cancel_all(self) -> None:
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
        self._deadlines.clear()
        self._due.clear()

    def _arm(self, key: TimerKey, deadline: float) -> None:
        handle = self._handles.get(key)
        if handle is not None:
            handle.cancel()
        self._handles[key] = self._loop.call_at(deadline, self._fire, key)

    def _fire(self, key: TimerKey) -> None:
        deadline = self._deadlines[key]
        if self._loop.time() < deadline:
            del self._handles[key]
            self._arm(key, deadline)
            return
        del self._deadlines[key], self._handles[key]
        self._due.add(key)
        self._expired(key)
