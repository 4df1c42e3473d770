"""The events of a consumer group, and its timers, each of one member. `departure` handles timers that expire.

| timer | set | after |
|---|---|---|
| session | at each heartbeat | the session timeout of the group, or of a member of the classic protocol |
| rebalance | when the member must give partitions up; cancelled once it has | its rebalance timeout |
| join | when a member of the classic protocol must rejoin; cancelled once it has | its rebalance timeout |
| sync | when such a member has joined; cancelled once it has fetched its assignment | its rebalance timeout |
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from odradek.broker.coordinator.consumer_group.regular_expressions import ResolvedExpression
from odradek.broker.coordinator.group_type import CONSUMER, GroupEvent, MayDescribe
from odradek.broker.coordinator.runtime.events import TimerKey
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

SESSION = "session"
REBALANCE = "rebalance"
JOIN = "join"
SYNC = "sync"


class ConsumerHeartbeat(GroupEvent, frozen=True):
    """ConsumerGroupHeartbeat, after `checks.check_request`. A member without an id (version 0) gets `new_member_id`.

    `may_describe`: None if the client may describe every topic.
    """

    creates: ClassVar[str] = CONSUMER

    request: ConsumerGroupHeartbeatRequest
    new_member_id: str
    client_id: str
    client_host: str
    may_describe: MayDescribe | None = None

    @property
    def may_replace(self) -> bool:
        """Whether the member joins."""
        return self.request.member_epoch == 0


class ExpressionsResolved(msgspec.Struct, frozen=True):
    """Regular expressions were matched against all topics: the result of the work of earlier effects."""

    resolved: dict[str, ResolvedExpression]


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
