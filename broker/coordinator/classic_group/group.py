"""A consumer group of the classic protocol: a pure state machine, told of events and the time, that returns effects.

```
          ┌────────── nobody is left ──────────┐
          ▼                                    │
      ┌───────┐  join   ┌────────────────────┐ │ all have joined,   ┌─────────────────────┐  leader's sync  ┌────────┐
 new─►│ Empty │────────►│ PreparingRebalance ├─┴─ or time is up ───►│ CompletingRebalance │────(stored)────►│ Stable │
      └───────┘         └────────────────────┘                      └──────────┬──────────┘                 └───┬────┘
                                  ▲                                            │  join, leave, a member fails   │
                                  └────────────────────────────────────────────┴────────────────────────────────┘
   any ──► Dead: the partition went to another broker
```

What a request of a member in good standing meets, by state; others get UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
FENCED_INSTANCE_ID or INCONSISTENT_GROUP_PROTOCOL whatever the state:

| | Empty | PreparingRebalance | CompletingRebalance | Stable |
|---|---|---|---|---|
| JoinGroup, as before | UNKNOWN_MEMBER_ID | parked | this generation | this generation; of the leader: rebalance |
| JoinGroup, changed | UNKNOWN_MEMBER_ID | parked | rebalance | rebalance |
| SyncGroup | UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS | parked until the leader's | the assignment |
| Heartbeat | UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS | none | none |
| OffsetCommit | UNKNOWN_MEMBER_ID | none | REBALANCE_IN_PROGRESS | none |

Timers:

| key | set | what happens when it expires |
|---|---|---|
| session, member | at each heartbeat, commit, answered join or sync | the member is out, unless it is parked |
| session, pending id | when the id is given out | the id is forgotten |
| join | when a rebalance begins | who has not joined is out, but static members; the others go on |
| sync | when the members are told to sync | who has not synced is out; rebalance |

The two halves of a rebalance have modules of their own: `group_join` says who may enter and how, `group_rebalance` how
a generation begins. What the group is between events is in `group_state`.

The record of the group is written when an empty group is created, when the leader's assignment has come (the members
hear of it once it is in the log), when the group becomes empty, and when a static member comes back under a new id.
Kafka's `GroupMetadataManager` and `ClassicGroup` are the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.classic_group.join import Joining
from odradek.broker.coordinator.classic_group.rebalance import JOIN_TIMER, SYNC_TIMER, ClassicSettings
from odradek.broker.coordinator.classic_group.state import State
from odradek.broker.coordinator.group_type import CLASSIC
from odradek.broker.coordinator.runtime.events import Effects, Event, LogLine, TimerExpired
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.plural import pluralize

_HEARTBEAT = {
    State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    State.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    State.COMPLETING: ErrorCode.NONE,
    State.STABLE: ErrorCode.NONE,
    State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class _Assignment(msgspec.Struct, frozen=True):
    """Follow-up of a leader's sync."""

    member_id: str
    assignments: dict[str, bytes]


Upgrade = Callable[["ClassicGroup", Any, int], Effects]
"""What a group with members makes of an event that is for a group of another type, at that time."""


class ClassicGroup(Joining):
    """One group; see the module and `group_type.Group`."""

    group_type: ClassVar[str] = CLASSIC
    follows_metadata: ClassVar[bool] = False

    def __init__(self, group_id: str, settings: ClassicSettings, now_ms: int, upgrade: Upgrade | None = None) -> None:
        super().__init__(group_id, settings, now_ms)
        self._upgrade = upgrade
        self._handlers: dict[type, Callable[[Any, Effects], None]] = {
            Join: self._join,
            Sync: self._sync,
            Heartbeat: self._heartbeat,
            Leave: self._leave,
            TimerExpired: self._expire,
        }

    # ---------------------------------------------------------------------------------------------------------- events

    def handle(self, event: Any, now_ms: int) -> Effects:
        self._now_ms = now_ms
        effects = Effects(replay_records=False)
        handler = self._handlers.get(event.__class__)
        if handler is not None:
            handler(event, effects)
            return effects
        if not isinstance(event, Event):
            return effects  # of work that a group of the other type asked for, whose place this one took
        if self._upgrade is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")
        return self._upgrade(self, event, now_ms)

    def metadata_changed(self, *_: Any) -> Effects:
        """A classic group ignores it: its leader watches the topics, and joins again."""
        return Effects()

    def append_completed(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        self._now_ms = now_ms
        effects = Effects(replay_records=False)
        if isinstance(follow_up, _Assignment):
            self._assignment_stored(follow_up, error, effects)
        else:
            self._replacement_stored(follow_up, error, effects)
        return effects

    def loaded(self, now_ms: int) -> Effects:
        self._now_ms = now_ms
        effects = Effects(replay_records=False)
        for member in self.members:
            self._expect_life(member, effects)
        if len(self.members) > self._settings.max_size:
            self._prepare_rebalance(
                f"{pluralize(len(self.members), 'member was', 'members were')} loaded, more than group.max.size",
                effects,
            )
        return effects

    def unloaded(self) -> Effects:
        effects = self.dissolved(ErrorCode.NOT_COORDINATOR)
        self.move_to(State.DEAD)
        return effects

    def dissolved(self, error: ErrorCode) -> Effects:
        """Answer everybody who waits with `error`, and wait no more: the group goes, or another takes its place."""
        effects = Effects(replay_records=False)
        for member in self.members:
            self._refuse(member, error, effects)
        return effects

    def rebalance(self, reason: str, now_ms: int) -> Effects:
        """Have all members of a group that has just taken over those of another one join again."""
        effects = self.loaded(now_ms)
        if self.current is State.STABLE:
            self._prepare_rebalance(reason, effects)
        return effects

    # ------------------------------------------------------------------------------------------------------------ sync

    def _sync(self, sync: Sync, effects: Effects) -> None:
        error = self._why_not_sync(sync)
        if error is not None:
            effects.replies.append((sync.pending_reply, SyncGroupResponse(error_code=error)))
            return
        member = self.members[sync.member_id]
        self.members.not_synced.pop(sync.member_id, None)
        if not self.members.not_synced:
            effects.timers[SYNC_TIMER] = None
        if self.current is State.STABLE:
            effects.replies.append((sync.pending_reply, self._synced(member)))
            return
        member.syncing = sync.pending_reply
        if self.members.leader == sync.member_id:
            assignments = {each.member_id: sync.assignments.get(each.member_id, b"") for each in self.members}
            effects.records.append(self.record_with(assignments))
            effects.follow_up = _Assignment(sync.member_id, assignments)

    def _why_not_sync(self, sync: Sync) -> ErrorCode | None:
        error = self.why_not(sync.member_id, sync.group_instance_id)
        if error is not None:
            return error
        if sync.generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if _differ(sync.protocol_type, self._protocol_type) or _differ(sync.protocol_name, self.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.current is State.PREPARING else None

    def _assignment_stored(self, stored: _Assignment, error: ErrorCode | None, effects: Effects) -> None:
        if error is not None:
            self._forget_assignments(error, effects)
            self._rebalance_or_go_on(f"{error.name} when storing the assignment of {stored.member_id}", effects)
            return
        for member in self.members:
            member.assignment = stored.assignments[member.member_id]
            pending_reply, member.syncing = member.syncing, None
            if pending_reply is not None:
                effects.replies.append((pending_reply, self._synced(member)))
                self._expect_life(member, effects)
        self.move_to(State.STABLE)

    # ------------------------------------------------------------------------------------ signs of life, and of the end

    def _heartbeat(self, heartbeat: Heartbeat, effects: Effects) -> None:
        error = self.why_not(heartbeat.member_id, heartbeat.group_instance_id)
        if error is None and heartbeat.generation_id != self.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is None:
            error = _HEARTBEAT[self.current]
            self._expect_life(self.members[heartbeat.member_id], effects)
        effects.replies.append((heartbeat.pending_reply, HeartbeatResponse(error_code=error)))

    def _leave(self, leave: Leave, effects: Effects) -> None:
        rows = [self._leave_one(leaving, effects) for leaving in leave.members]
        effects.replies.append((leave.pending_reply, LeaveGroupResponse(members=rows)))
        if any(row.error_code == ErrorCode.NONE for row in rows) and self.current is not State.EMPTY:
            self._rebalance_or_go_on("members left", effects)

    def _leave_one(self, leaving: Leaving, effects: Effects) -> MemberResponse:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        error: ErrorCode | None = None
        if not member_id:
            member_id = self.members.static_id(instance_id or "") or ""
        if member_id not in self.members.pending:
            error = self.why_not(member_id, instance_id)
        if error is None:
            self._remove(member_id, effects)
            effects.log_lines.append(LogLine("member left", {"member": member_id, "reason": leaving.reason}))
        return MemberResponse(leaving.member_id, instance_id, ErrorCode.NONE if error is None else error)

    def _expire(self, expired: TimerExpired, effects: Effects) -> None:
        if expired.timer == JOIN_TIMER:
            self._join_time_is_up(effects)
        elif expired.timer == SYNC_TIMER:
            self._sync_time_is_up(effects)
        else:
            _, member_id = expired.timer
            self._session_is_over(member_id, effects)

    def _sync_time_is_up(self, effects: Effects) -> None:
        missing = list(self.members.not_synced)
        for member_id in missing:
            self._remove(member_id, effects)
        if missing:
            self._prepare_rebalance(f"members did not sync: {', '.join(missing)}", effects)

    def _session_is_over(self, member_id: str, effects: Effects) -> None:
        member = self.members.get(member_id)
        if (member is None and member_id not in self.members.pending) or (member is not None and member.is_waiting):
            return
        effects.log_lines.append(LogLine("member failed", {"member": member_id}))
        self._remove(member_id, effects)
        if member is not None and self.current is not State.PREPARING:
            self._prepare_rebalance(f"the session of member {member_id} is over", effects)
        elif self.current is State.PREPARING and self.members.all_joined:
            self._complete_join(effects)


def _differ(told: str | None, known: str | None) -> bool:
    return told is not None and known is not None and told != known
