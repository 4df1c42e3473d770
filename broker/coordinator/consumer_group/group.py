"""A consumer group of the consumer protocol (KIP-848), as the coordinator sees it: a pure state machine.

```
ConsumerHeartbeat ─┬─ epoch ≥ 0 ─► heartbeat        joins, stays, changes its mind
                   └─ epoch < 0 ─► departure        leaves
TimerExpired ────────────────────► departure        is fenced
Join, Sync, Heartbeat, Leave ────► classic_members  the same for members of the classic protocol
ExpressionsResolved ─────────────► expressions      what they match is known
metadata_changed ────────────────► a mark: the next heartbeat looks at the metadata
```

`state` draws the epochs and names the invariants. Everything that is decided comes out as `Effects`; the state follows
when their records are replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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
    offset_checks,
)
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat, ExpressionsResolved
from odradek.broker.coordinator.consumer_group.member import MemberState
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.timers import rebalance_timer, session_timer
from odradek.broker.coordinator.group_type import CONSUMER, Committer
from odradek.broker.coordinator.runtime.events import Effects, TimerExpired, TimerKey, WorkFailed
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_describe import DescribedGroup


class _Marked(msgspec.Struct, frozen=True):
    """Follow-up of effects that moved marks: what they took for done, and is not if they cannot be written."""

    is_refreshed: bool
    is_resolving: bool


class ConsumerGroup:
    """One group. `settings` and `image` tell the configuration and the cluster's metadata as of now.

    `downgrade` makes a classic group of it at a time, if its last member of the consumer protocol goes, as
    `departure.Downgrade` does.
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
        self._state = GroupState(group_id)

    @property
    def state(self) -> str:
        return self._state.name

    @property
    def members_count(self) -> int:
        return len(self._state.members)

    @property
    def is_empty(self) -> bool:
        return not self._state.members

    def described(self) -> DescribedGroup:
        return describe.described(self._state, self._settings(), self._image())

    def handle(self, event: Any, now_ms: int) -> Effects:
        """Take an event. Raises KafkaError, having changed nothing."""
        state, image = self._state, self._image()

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
                return expressions.refresh(state, event, image)
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
        state, settings = self._state, self._settings()
        if classic_members.must_be_named(event):
            return classic_members.name(state, event, settings)  # which looks at no metadata
        return self._marked(classic_members.join(state, event, settings, self._image(), now_ms, downgrade))

    def _marked(self, effects: Effects) -> Effects:
        """Remember what joins and heartbeats do besides: look at the metadata, ask to resolve expressions."""
        state = self._state
        if effects.work is not None or state.is_refresh_due:
            effects.follow_up = _Marked(state.is_refresh_due, effects.work is not None)
            state.is_resolving = state.is_resolving or effects.work is not None
            state.is_refresh_due = False
        return effects

    def append_completed(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        if error is not None:
            state, marked = self._state, follow_up
            state.is_refresh_due = state.is_refresh_due or marked.is_refreshed
            # What was to be resolved is not; what an earlier heartbeat asked for still is.
            state.is_resolving = state.is_resolving and not marked.is_resolving
        return Effects()

    def metadata_changed(self, changed_topics: Collection[str], has_new_topics: bool, now_ms: int) -> Effects:
        """Set a mark, whatever the topics: a look at the metadata costs less than to find out who reads them."""
        self._state.is_refresh_due = True
        if has_new_topics:
            self._state.topics_added_at = self._image().revision
        return Effects()

    def replay(self, record: CoordinatorRecord) -> None:
        self._state.replay(record)

    def loaded(self, now_ms: int) -> Effects:
        """Give every member a whole session, and those that are revoking their whole time, to be heard of again."""
        effects = Effects()
        # The metadata may have changed while nobody looked.
        self._state.is_refresh_due = True
        session_timeout_ms = self._settings().session_timeout_ms
        for member in self._state.members.values():
            # As in Kafka, the timeout of the group for all; a member of the classic protocol has its own from then on.
            effects.timers[session_timer(member.member_id)] = session_timeout_ms
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                effects.timers[rebalance_timer(member.member_id)] = member.rebalance_timeout_ms
        return effects

    def unloaded(self) -> Effects:
        return Effects()

    def tombstones(self) -> list[CoordinatorRecord]:
        return self._state.tombstones()

    def check_commit(self, committer: Committer, partitions: Collection[tuple[str, int]]) -> dict[TimerKey, int | None]:
        """Raises KafkaError (`offset_checks`). A commit is no sign of life here: heartbeats are."""
        offset_checks.check_commit(self._state, committer, partitions, self._image())
        return {}

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError (`offset_checks`)."""
        offset_checks.check_fetch(self._state, member_id, member_epoch)

    def check_offset_delete(self) -> None:
        """Nothing to refuse: topics that members read are left out one by one."""

    def check_delete(self) -> None:
        """Raises NON_EMPTY_GROUP."""
        if self._state.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return self._state.is_subscribed_to(topic)

    def retention_start(self, commit_timestamp: int) -> int | None:
        return commit_timestamp
