"""A group of the consumer protocol (KIP-848): a state machine that handles events and returns effects.

```
ConsumerHeartbeat ─┬─ epoch ≥ 0 ─► heartbeat        joins, stays, changes its subscription
                   └─ epoch < 0 ─► departure        leaves
TimerExpired ────────────────────► departure        is fenced
Join, Sync, Heartbeat, Leave ────► classic_members  the same for members of the classic protocol
ExpressionsResolved ─────────────► expressions      the matches are known
metadata_changed ────────────────► a mark: the next heartbeat compares the metadata
```

`state` has the epochs and the invariants. Every decision is returned as `Effects`; the state changes when their records
are replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar

import msgspec

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Sync
from odradek.broker.coordinator.consumer_group import (
    checks,
    classic_members,
    consumer_protocol,
    departure,
    describe,
    expressions,
    heartbeat,
)
from odradek.broker.coordinator.consumer_group.events import (
    ConsumerHeartbeat,
    ExpressionsResolved,
    all_timers,
    rebalance_timer,
    session_timer,
)
from odradek.broker.coordinator.consumer_group.member import MemberState
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.group_type import CONSUMER, Committer
from odradek.broker.coordinator.runtime.events import Effects, TimerExpired, TimerKey, WorkFailed
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.coordinator.sessions import CLASSIC_HEARTBEATS, MemberSession
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_describe import DescribedGroup


class _Marked(msgspec.Struct, frozen=True):
    """Follow-up of effects that changed marks, to change them back if the records cannot be written."""

    is_refreshed: bool
    is_resolving: bool


class ConsumerGroup:
    """One group. `settings` and `image` return the current configuration and metadata.

    `downgrade` is a `departure.Downgrade` that also takes the time.
    """

    group_type: ClassVar[str] = CONSUMER
    follows_metadata: ClassVar[bool] = True
    protocol_type: ClassVar[str] = consumer_protocol.NAME

    def __init__(
        self,
        group_id: str,
        settings: Callable[[], ConsumerGroupSettings],
        image: Callable[[], MetadataImage],
        downgrade: Callable[[GroupState, Collection[str], int], Effects | None],
    ) -> None:
        self.group_id = group_id
        self._settings = settings
        self._image = image
        self._downgrade = downgrade
        self.group_state = GroupState(group_id)

    @property
    def state(self) -> str:
        return self.group_state.name

    @property
    def members_count(self) -> int:
        return len(self.group_state.members)

    @property
    def is_empty(self) -> bool:
        return not self.group_state.members

    def described(self) -> DescribedGroup:
        return describe.described(self.group_state, self._settings(), self._image())

    def handle(self, event: Any, now_ms: int) -> Effects:
        """Raises KafkaError, having changed nothing."""
        state, image = self.group_state, self._image()

        def downgrade(state: GroupState, gone: Collection[str]) -> Effects | None:
            return self._downgrade(state, gone, now_ms)

        match event:
            case ConsumerHeartbeat():
                checks.check_exists(state, event.request.member_epoch)
                if event.request.member_epoch < 0:
                    return departure.leave(state, event, image, downgrade)
                return self._marked(heartbeat.heartbeat(state, event, self._settings(), image, now_ms))
            case TimerExpired():
                return departure.time_out(state, event.timer, image, downgrade)
            case ExpressionsResolved():
                state.is_resolving = False
                return expressions.resolved(state, event, image)
            case WorkFailed():
                state.is_resolving = False
                return Effects()
            case Join():
                return self._join(event, now_ms, downgrade)
            case Sync():
                return classic_members.sync(state, event, image)
            case Heartbeat():
                return classic_members.heartbeat(state, event)
            case Leave():
                return classic_members.leave(state, event, image, downgrade)
        raise TypeError(f"not an event of a consumer group: {event!r}")

    def _join(self, event: Join, now_ms: int, downgrade: departure.Downgrade) -> Effects:
        state, settings = self.group_state, self._settings()
        if classic_members.needs_member_id(event):
            return classic_members.give_member_id(state, event, settings)  # without comparing the metadata
        return self._marked(classic_members.join(state, event, settings, self._image(), now_ms, downgrade))

    def _marked(self, effects: Effects) -> Effects:
        """Set the marks of a join or heartbeat: it compared the metadata, and may have begun to resolve expressions."""
        state = self.group_state
        if effects.work is not None or state.is_refresh_due:
            effects.follow_up = _Marked(state.is_refresh_due, effects.work is not None)
            state.is_resolving = state.is_resolving or effects.work is not None
            state.is_refresh_due = False
        return effects

    def append_completed(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        if error is not None:
            state, marked = self.group_state, follow_up
            state.is_refresh_due = state.is_refresh_due or marked.is_refreshed
            # This work does not run; that of an earlier heartbeat still does.
            state.is_resolving = state.is_resolving and not marked.is_resolving
        return Effects()

    def metadata_changed(self, changed_topics: Collection[str], has_new_topics: bool, now_ms: int) -> Effects:
        """Set a mark, whatever the topics: to compare the metadata costs less than to find the topics' subscribers."""
        self.group_state.is_refresh_due = True
        if has_new_topics:
            self.group_state.topics_added_at = self._image().revision
        return Effects()

    def replay(self, record: CoordinatorRecord) -> None:
        self.group_state.replay(record)

    def loaded(self, now_ms: int) -> Effects:
        """Give every member a whole session timeout, and members that are revoking their whole rebalance timeout."""
        effects = Effects()
        # The metadata may have changed before the group was loaded, and new topics may have come.
        self.group_state.is_refresh_due = True
        self.group_state.topics_added_at = self._image().revision
        session_timeout_ms = self._settings().session_timeout_ms
        for member in self.group_state.members.values():
            # As in Kafka, all get the timeout of the group; those of the classic protocol have their own later.
            effects.timers[session_timer(member.member_id)] = session_timeout_ms
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                effects.timers[rebalance_timer(member.member_id)] = member.rebalance_timeout_ms
        return effects

    def unloaded(self) -> Effects:
        return Effects()

    def tombstones(self) -> list[CoordinatorRecord]:
        return self.group_state.tombstones()

    def sessions(self) -> Iterator[MemberSession]:
        """Yield the sessions of all members; no request of a consumer group is parked."""
        settings = self._settings()
        for member in self.group_state.members.values():
            timeout_ms, heartbeat_ms = settings.session_timeout_ms, float(settings.heartbeat_interval_ms)
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                heartbeat_ms = timeout_ms / CLASSIC_HEARTBEATS
            session, *awaited = all_timers(member.member_id)
            yield MemberSession(
                member.member_id, member.client_id, session, timeout_ms, heartbeat_ms, False, tuple(awaited)
            )

    def check_commit(self, committer: Committer, partitions: Collection[tuple[str, int]]) -> dict[TimerKey, int | None]:
        """Raises KafkaError (`checks`). A commit moves no timer: only heartbeats prolong a session."""
        checks.check_commit(self.group_state, committer, partitions, self._image())
        return {}

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError (`checks`)."""
        checks.check_fetch(self.group_state, member_id, member_epoch)

    def check_offset_delete(self) -> None:
        """Allow it: the caller refuses each topic that a member reads."""

    def check_delete(self) -> None:
        """Raises NON_EMPTY_GROUP."""
        if self.group_state.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return self.group_state.is_subscribed_to(topic)

    def retention_start(self, commit_timestamp: int) -> int | None:
        return commit_timestamp
