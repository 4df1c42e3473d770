"""The sessions of a group's members, whatever the type of the group: which members live, and what waits for them.

A living member sends a heartbeat every `heartbeat_ms`, so one that was heard of by then lives, and so does one whose
request is parked. Kafka needs no such rule: there, a session ends or it does not. A test that moves the clock does:
members that live in real time must not expire because two hours passed at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from odradek.broker.coordinator.runtime.events import TimerKey
from odradek.broker.coordinator.runtime.timers import KeyTimers

CLASSIC_HEARTBEATS: Final = 3
"""Heartbeats in a session of the classic protocol, at least: clients are told to send so many."""
_LATE: Final = 1.25
"""A heartbeat is sent when its interval is over, and arrives later. A quarter more is still in time."""


class MemberSession(NamedTuple):
    """The session of one member. `heartbeat_ms`: the interval of its heartbeats, as the client or the group chose it.

    `awaited` are the timers by which the group waits for something that this member has not done yet.
    """

    member_id: str
    client_id: str
    timer: TimerKey
    timeout_ms: int
    heartbeat_ms: float
    is_parked: bool
    awaited: tuple[TimerKey, ...]

    def is_living(self, timers: KeyTimers) -> bool:
        """Return whether the member was heard of within a heartbeat, or waits for an answer."""
        remaining = timers.remaining(self.timer)
        if self.is_parked or remaining is None:
            return self.is_parked
        return self.timeout_ms - remaining * 1000 <= self.heartbeat_ms * _LATE


def keep_living(sessions: Iterable[MemberSession], timers: KeyTimers, seconds: float) -> None:
    """Give living members, and the group's waits for them, so many seconds more."""
    kept: set[TimerKey] = set()
    for session in sessions:
        if session.is_living(timers):
            kept.update((session.timer, *session.awaited))
    timers.postpone(kept, seconds)
