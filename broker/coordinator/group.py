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

A group that was empty waits `initial_rebalance_delay_ms` for more members after each new one, up to the rebalance
timeout. A new member that is parked may be a client that has gone, so its session ends after five minutes.

The record of the group is written when an empty group is created, when the leader's assignment has come (the members
hear of it once it is in the log), when the group becomes empty, and when a static member comes back under a new id.
Kafka's `GroupMetadataManager` and `ClassicGroup` are the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from broker.coordinator.classic_events import Heartbeat, Join, Leave, Leaving, Sync
from broker.coordinator.group_state import ClassicGroupState, State, session_timer
from broker.coordinator.group_type import CLASSIC, Effects, Note, TimerExpired, TimerKey
from broker.coordinator.members import Member, new_member
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from protocol.messages.sync_group import SyncGroupResponse

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member may be parked before it is taken for gone (Kafka's `GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`)."""

_JOIN, _SYNC = "join", "sync"
_JOIN_TIMER: TimerKey = (_JOIN, "")
_SYNC_TIMER: TimerKey = (_SYNC, "")


_HEARTBEAT = {
    State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    State.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    State.COMPLETING: ErrorCode.NONE,
    State.STABLE: ErrorCode.NONE,
    State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
_CAN_REBALANCE = frozenset({State.EMPTY, State.COMPLETING, State.STABLE})


class ClassicSettings(msgspec.Struct, frozen=True):
    """What the broker's configuration says of classic groups."""

    initial_rebalance_delay_ms: int = 3000
    max_size: int = 0x7FFFFFFF


class _Assignment(msgspec.Struct, frozen=True):
    """Follow-up of a leader's sync."""

    member_id: str
    assignments: dict[str, bytes]


class _Replacement(msgspec.Struct, frozen=True):
    """Follow-up of a static member that came back while the group is stable."""

    old: Member
    new_id: str
    leader_before: str | None
    may_skip_assignment: bool


Upgrade = Callable[["ClassicGroup", Any, int], Effects]
"""What a group with members makes of an event that is for a group of another type, at that time."""


class ClassicGroup(ClassicGroupState):
    """One group; see the module and `group_type.Group`."""

    group_type: ClassVar[str] = CLASSIC
    follows_metadata: ClassVar[bool] = False

    def __init__(self, group_id: str, settings: ClassicSettings, now_ms: int, upgrade: Upgrade | None = None) -> None:
        super().__init__(group_id, now_ms)
        self._upgrade = upgrade
        self.rebalances_completed = 0
        self._settings = settings
        self._initial_wait: tuple[int, int] | None = None  # of an initial rebalance: the delay, what may follow it
        self._more_came = False
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
        effects = Effects(is_applied=True)
        handler = self._handlers.get(event.__class__)
        if handler is not None:
            handler(event, effects)
            return effects
        if self._upgrade is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")
        return self._upgrade(self, event, now_ms)

    def metadata_changed(self, *_: Any) -> Effects:
        """Nothing comes of it here: the leader of the group watches the topics, and joins again."""
        return Effects()

    def stored(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        self._now_ms = now_ms
        effects = Effects(is_applied=True)
        if isinstance(follow_up, _Assignment):
            self._assignment_stored(follow_up, error, effects)
        else:
            self._replacement_stored(follow_up, error, effects)
        return effects

    def loaded(self, now_ms: int) -> Effects:
        self._now_ms = now_ms
        effects = Effects(is_applied=True)
        for member in self.members:
            self._expect_life(member, effects)
        if len(self.members) > self._settings.max_size:
            self._prepare_rebalance(f"{len(self.members)} members were loaded, more than group.max.size", effects)
        return effects

    def unloaded(self) -> Effects:
        effects = Effects(is_applied=True)
        for member in self.members:
            self._refuse(member, ErrorCode.NOT_COORDINATOR, effects)
        self.move_to(State.DEAD)
        return effects

    # ------------------------------------------------------------------------------------------------------------ join

    def _join(self, join: Join, effects: Effects) -> None:
        is_known = bool(join.member_id)
        error = self._why_not_join(join)
        if error is not None:
            effects.replies.append((join.ticket, _refused_join(error, join.member_id)))
        elif is_known:
            self._join_known(join, effects)
        elif join.group_instance_id is not None:
            self._join_static(join, join.group_instance_id, effects)
        elif join.requires_known_member_id:
            self.members.pending[join.new_member_id] = None
            effects.timers[session_timer(join.new_member_id)] = join.session_timeout_ms
            reply = _refused_join(ErrorCode.MEMBER_ID_REQUIRED, join.new_member_id)
            effects.replies.append((join.ticket, reply))
        else:
            self._add(join, join.new_member_id, effects)
        if not self.is_stored and not is_known and not effects.records:
            # A group exists from the first attempt to join on, whatever came of it.
            effects.records.append(self.record_of_new_group())
        self.is_stored = self.is_stored or bool(effects.records)

    def _why_not_join(self, join: Join) -> ErrorCode | None:
        if not self._has_room_for(join.member_id):
            self.members.remove(join.member_id)
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if self.current is State.EMPTY:
            fits = bool(join.protocol_type) and bool(join.protocols)
        else:
            fits = join.protocol_type == self._protocol_type and self.members.can_speak(join.protocols)
        if not fits:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not join.member_id or join.member_id in self.members.pending:
            return None
        if self.current is State.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self.why_not(join.member_id, join.group_instance_id)

    def _has_room_for(self, member_id: str) -> bool:
        if self.current is State.EMPTY:
            return True
        member = self.members.get(member_id)
        if self.current is State.PREPARING:
            # Those who wait count, so that of a group that is too large the last to join again are left out.
            is_in = member is not None and member.joining is not None
            return is_in or self.members.joined_count < self._settings.max_size
        return member is not None or len(self.members) < self._settings.max_size

    def _join_known(self, join: Join, effects: Effects) -> None:
        if join.member_id in self.members.pending:
            self._add(join, join.member_id, effects)
            return
        member = self.members[join.member_id]
        leads = self.members.leader == join.member_id
        is_unchanged = member.protocols == join.protocols
        if is_unchanged and (self.current is State.COMPLETING or (self.current is State.STABLE and not leads)):
            # It has not heard of this generation, or thinks that it has not; who leads may want to assign anew.
            effects.replies.append((join.ticket, self._joined(member, with_members=self.current is State.COMPLETING)))
            return
        self.members.rejoin(member, join)
        self._rebalance_or_go_on(f"member {member.member_id} joins again; client reason: {join.reason}", effects)

    def _join_static(self, join: Join, group_instance_id: str, effects: Effects) -> None:
        old_id = self.members.static_id(group_instance_id)
        if old_id is None:
            self._add(join, join.new_member_id, effects)
            return
        leader_before = self.members.leader
        old, member = self.members.replace_static(old_id, join.new_member_id)
        self._refuse(old, ErrorCode.FENCED_INSTANCE_ID, effects)
        effects.timers[session_timer(old_id)] = None
        self.members.rejoin(member, join)
        self._expect_life(member, effects)
        effects.notes.append(Note("static member replaced", {"instance": group_instance_id, "old_member": old_id}))
        reason = f"static member {group_instance_id} came back; client reason: {join.reason}"
        if self.current is not State.STABLE:
            # Who is to assign may know the old id, so an assignment under way would miss the new one.
            self._rebalance_or_go_on(reason, effects)
        elif self.members.choose_protocol() != self.protocol_name:
            self._rebalance_or_go_on(reason, effects)
        else:
            effects.records.append(self.record())
            effects.follow_up = _Replacement(old, join.new_member_id, leader_before, join.may_skip_assignment)

    def _replacement_stored(self, replacement: _Replacement, error: ErrorCode | None, effects: Effects) -> None:
        member = self.members[replacement.new_id]
        ticket = self.members.take_joining(member)
        assert ticket is not None
        if error is not None:
            self.members.take_back_static(replacement.old, replacement.new_id)
            self.members.leader = replacement.leader_before
            effects.timers[session_timer(replacement.new_id)] = None
            self._expect_life(replacement.old, effects)
            effects.replies.append((ticket, _refused_join(error, "")))
            return
        reply = self._joined(member, with_members=replacement.may_skip_assignment)
        if replacement.may_skip_assignment:
            reply.skip_assignment = self.members.leader == member.member_id
        else:
            # A client from before KIP-814 that learns that it leads would assign; it is told the old id instead.
            reply.leader = replacement.leader_before or ""
        effects.replies.append((ticket, reply))

    def _add(self, join: Join, member_id: str, effects: Effects) -> None:
        if not len(self.members):
            self._protocol_type = join.protocol_type
        if self.current is State.PREPARING and self._initial_wait is not None:
            self._more_came = True
        self.members.add(new_member(join, member_id))
        effects.timers[session_timer(member_id)] = NEW_MEMBER_TIMEOUT_MS
        self._rebalance_or_go_on(f"new member {member_id}; client reason: {join.reason}", effects)

    # ------------------------------------------------------------------------------------------------------- rebalance

    def _rebalance_or_go_on(self, reason: str, effects: Effects) -> None:
        if self.current in _CAN_REBALANCE:
            self._prepare_rebalance(reason, effects)
        elif self.current is State.PREPARING and self._initial_wait is None and self.members.all_joined:
            self._complete_join(effects)

    def _prepare_rebalance(self, reason: str, effects: Effects) -> None:
        if self.current is State.COMPLETING:
            self._forget_assignments(ErrorCode.REBALANCE_IN_PROGRESS, effects)
        self.members.not_synced.clear()
        effects.timers[_SYNC_TIMER] = None
        was_empty = self.current is State.EMPTY
        self.move_to(State.PREPARING)
        effects.notes.append(Note("rebalancing", {"generation": self.generation_id, "reason": reason}))
        if was_empty:
            delay = self._settings.initial_rebalance_delay_ms
            self._initial_wait = delay, max(self.members.rebalance_timeout_ms - delay, 0)
            self._more_came = False
            effects.timers[_JOIN_TIMER] = delay
        elif self.members.all_joined:
            self._complete_join(effects)
        else:
            effects.timers[_JOIN_TIMER] = self.members.rebalance_timeout_ms

    def _join_time_is_up(self, effects: Effects) -> None:
        if self._initial_wait is not None:
            waited, remaining = self._initial_wait
            if self._more_came and remaining:
                self._more_came = False
                delay = min(self._settings.initial_rebalance_delay_ms, remaining)
                self._initial_wait = delay, max(remaining - waited, 0)
                effects.timers[_JOIN_TIMER] = delay
                return
        self._complete_join(effects)

    def _complete_join(self, effects: Effects) -> None:
        self._initial_wait = None
        effects.timers[_JOIN_TIMER] = None
        gone = [each for each in self.members if each.joining is None and each.group_instance_id is None]
        for member in gone:
            self._remove(member.member_id, effects)
        if gone:
            effects.notes.append(Note("members did not join", {"members": [each.member_id for each in gone]}))
        if len(self.members) and not self.members.elect_joined_leader():
            # Static members alone, and none has come back yet: they may, until their sessions end.
            effects.timers[_JOIN_TIMER] = self.members.rebalance_timeout_ms
            return
        self.generation_id += 1
        self.members.not_synced.clear()
        if len(self.members):
            self._begin_generation(effects)
        else:
            self.protocol_name = None
            self._topics = self.subscriptions()
            self.move_to(State.EMPTY)
            effects.records.append(self.record_with({}))
            effects.notes.append(Note("group is empty", {"generation": self.generation_id}))

    def _begin_generation(self, effects: Effects) -> None:
        self.protocol_name = self.members.choose_protocol()
        self._topics = self.subscriptions()
        self.move_to(State.COMPLETING)
        for member in self.members:
            ticket = self.members.take_joining(member)
            if ticket is not None:
                effects.replies.append((ticket, self._joined(member, with_members=True)))
            self._expect_life(member, effects)
            member.is_new = False
            self.members.not_synced[member.member_id] = None
        effects.timers[_SYNC_TIMER] = self.members.rebalance_timeout_ms
        fields = {"generation": self.generation_id, "protocol": self.protocol_name, "members": len(self.members)}
        effects.notes.append(Note("members have joined", fields))

    # ------------------------------------------------------------------------------------------------------------ sync

    def _sync(self, sync: Sync, effects: Effects) -> None:
        error = self._why_not_sync(sync)
        if error is not None:
            effects.replies.append((sync.ticket, SyncGroupResponse(error_code=error)))
            return
        member = self.members[sync.member_id]
        self.members.not_synced.pop(sync.member_id, None)
        if not self.members.not_synced:
            effects.timers[_SYNC_TIMER] = None
        if self.current is State.STABLE:
            effects.replies.append((sync.ticket, self._synced(member)))
            return
        member.syncing = sync.ticket
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
            ticket, member.syncing = member.syncing, None
            if ticket is not None:
                effects.replies.append((ticket, self._synced(member)))
                self._expect_life(member, effects)
        self.move_to(State.STABLE)
        self.rebalances_completed += 1

    def _forget_assignments(self, error: ErrorCode, effects: Effects) -> None:
        for member in self.members:
            member.assignment = b""
            ticket, member.syncing = member.syncing, None
            if ticket is not None:
                effects.replies.append((ticket, SyncGroupResponse(error_code=error)))
                self._expect_life(member, effects)

    # ------------------------------------------------------------------------------------ signs of life, and of the end

    def _heartbeat(self, heartbeat: Heartbeat, effects: Effects) -> None:
        error = self.why_not(heartbeat.member_id, heartbeat.group_instance_id)
        if error is None and heartbeat.generation_id != self.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is None:
            error = _HEARTBEAT[self.current]
            self._expect_life(self.members[heartbeat.member_id], effects)
        effects.replies.append((heartbeat.ticket, HeartbeatResponse(error_code=error)))

    def _leave(self, leave: Leave, effects: Effects) -> None:
        rows = [self._leave_one(leaving, effects) for leaving in leave.members]
        effects.replies.append((leave.ticket, LeaveGroupResponse(members=rows)))
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
            effects.notes.append(Note("member left", {"member": member_id, "reason": leaving.reason}))
        return MemberResponse(leaving.member_id, instance_id, ErrorCode.NONE if error is None else error)

    def _expire(self, expired: TimerExpired, effects: Effects) -> None:
        what, member_id = expired.key
        if what == _JOIN:
            self._join_time_is_up(effects)
        elif what == _SYNC:
            self._sync_time_is_up(effects)
        else:
            self._session_is_over(member_id, effects)

    def _sync_time_is_up(self, effects: Effects) -> None:
        missing = list(self.members.not_synced)
        for member_id in missing:
            self._remove(member_id, effects)
        if missing:
            self._prepare_rebalance(f"members did not sync: {', '.join(missing)}", effects)

    def _session_is_over(self, member_id: str, effects: Effects) -> None:
        member = self.members.get(member_id)
        if member is not None and member.is_waiting:
            return
        effects.notes.append(Note("member failed", {"member": member_id}))
        self._remove(member_id, effects)
        if member is not None and self.current is not State.PREPARING:
            self._prepare_rebalance(f"the session of member {member_id} is over", effects)
        elif self.current is State.PREPARING and self.members.all_joined:
            self._complete_join(effects)

    def _remove(self, member_id: str, effects: Effects) -> None:
        """Take a member out; if it is parked it is told, so that it may come again if it is still there."""
        member = self.members.get(member_id)
        if member is not None:
            self._refuse(member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
        self.members.remove(member_id)
        effects.timers[session_timer(member_id)] = None

    def _expect_life(self, member: Member, effects: Effects) -> None:
        effects.timers[session_timer(member.member_id)] = member.session_timeout_ms

    def _refuse(self, member: Member, error: ErrorCode, effects: Effects) -> None:
        """Answer what the member has parked."""
        joining = self.members.take_joining(member) if member.member_id in self.members else member.joining
        syncing, member.syncing = member.syncing, None
        if joining is not None:
            told_id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
            effects.replies.append((joining, _refused_join(error, told_id)))
        if syncing is not None:
            effects.replies.append((syncing, SyncGroupResponse(error_code=error)))

    def _joined(self, member: Member, *, with_members: bool) -> JoinGroupResponse:
        leads = with_members and self.members.leader == member.member_id
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self._protocol_type,
            protocol_name=self.protocol_name,
            leader=self.members.leader or "",
            member_id=member.member_id,
            members=list(self._member_rows()) if leads else [],
        )

    def _member_rows(self) -> Iterable[JoinGroupResponseMember]:
        for each in self.members:
            yield JoinGroupResponseMember(each.member_id, each.group_instance_id, each.metadata(self.protocol_name))

    def _synced(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self._protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )


def _refused_join(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def _differ(told: str | None, known: str | None) -> bool:
    return told is not None and known is not None and told != known
