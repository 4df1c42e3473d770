"""The timers of a consumer group, each of one member; whom one of them fences is in `departure`.

| timer | set | after |
|---|---|---|
| session | at each sign of life | the session timeout of the group, or of a member of the classic protocol |
| rebalance | when the member is told to give partitions up; off once it has | its rebalance timeout |
| join | when a member of the classic protocol is told to rejoin; off once it has | its rebalance timeout |
| sync | when such a member has joined; off once it has asked for its assignment | its rebalance timeout |
"""

from __future__ import annotations

from odradek.broker.coordinator.runtime.events import TimerKey

SESSION = "session"
REBALANCE = "rebalance"
JOIN = "join"
SYNC = "sync"


def session_timer(member_id: str) -> TimerKey:
    return SESSION, member_id


def rebalance_timer(member_id: str) -> TimerKey:
    return REBALANCE, member_id


def join_timer(member_id: str) -> TimerKey:
    return JOIN, member_id


def sync_timer(member_id: str) -> TimerKey:
    return SYNC, member_id


def all_timers(member_id: str) -> list[TimerKey]:
    return [session_timer(member_id), rebalance_timer(member_id), join_timer(member_id), sync_timer(member_id)]
