"""A group of the classic protocol: a state machine that handles events and returns effects.

| timer | set | when it expires |
|---|---|---|
| session, member | at each heartbeat, commit, answered join or sync | the member is removed, unless it is parked |
| session, id that was given out | when the id is given out | the id is forgotten |
| join | when a rebalance starts | members that have not joined are removed, but not static ones; the others go on |
| sync | when the joins are answered | members that have not synced are removed; rebalance |

`state_table` has the states and the responses in each of them, `join` says how members enter, `rebalance` how a
generation begins. The record of the group is written when an empty group is created, when the leader's assignment has
come (the members get it once it is in the log), when the group becomes empty, and when a static member comes back under
a new id. Kafka's `GroupMetadataManager` and `ClassicGroup` are the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.classic_group.join import Joining, Replacement
from odradek.broker.coordinator.classic_group.member_effects import (
    clear_assignments,
    refuse_parked,
    remove_member,
    restart_session,
    sync_response,
)
from odradek.broker.coordinator.classic_group.members import Member, Members
from odradek.broker.coordinator.classic_group.rebalance import JOIN_TIMER, SYNC_TIMER, ClassicSettings, Rebalance
from odradek.broker.coordinator.classic_group.state import ClassicGroupState, session_timer
from odradek.broker.coordinator.classic_group.state_table import ERRORS, RESPONSES, Action, Request, State
from odradek.broker.coordinator.classic_group.stored_group import group_tombstone
from odradek.broker.coordinator.group_type import CLASSIC, Committer, GroupEvent
from odradek.broker.coordinator.runtime.events import Effects, LogLine, TimerExpired, TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.coordinator.sessions import CLASSIC_HEARTBEATS, MemberSession
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.plural import pluralize


class _Assignment(msgspec.Struct, frozen=True):
    """Follow-up of the leader's sync."""

    member_id: str
    assignments: dict[str, bytes]


Upgrade = Callable[["ClassicGroup", Any, int], Effects]
"""A function that handles an event for a group of another type, at a time, by converting a group with members."""


class ClassicGroup:
    """One group, as `group_type.Group` says."""

    group_type: ClassVar[str] = CLASSIC
    follows_metadata: ClassVar[bool] = False

    def __init__(self, group_id: str, settings: ClassicSettings, now_ms: int, upgrade: Upgrade | None = None) -> None:
        self.group_id = group_id
        self._settings = settings
        self._upgrade = upgrade
        self._state = ClassicGroupState(group_id, now_ms)
        self._rebalance = Rebalance(self._state, settings)
        self._joining = Joining(self._state, self._rebalance, settings)
        self._handlers: dict[type, Callable[[Any, Effects], None]] = {
            Join: self._joining.join,
            Sync: self._sync,
            Heartbeat: self._heartbeat,
            Leave: self._leave,
            TimerExpired: self._timer_expired,
        }

    @property
    def state(self) -> str:
        return self._state.current.value

    @property
    def is_empty(self) -> bool:
        return self._state.current is State.EMPTY

    @property
    def is_stable(self) -> bool:
        return self._state.current is State.STABLE

    @property
    def members(self) -> Members:
        return self._state.members

    @property
    def members_count(self) -> int:
        return len(self._state.members)

    @property
    def generation_id(self) -> int:
        return self._state.generation_id

    @property
    def protocol_type(self) -> str:
        return self._state.protocol_type or ""

    @property
    def protocol_name(self) -> str | None:
        return self._state.protocol_name

    # ---------------------------------------------------------------------------------------------------------- events

    def handle(self, event: Any, now_ms: int) -> Effects:
        effects = self._effects(now_ms)
        handler = self._handlers.get(event.__class__)
        if handler is not None:
            handler(event, effects)
            return effects
        if not isinstance(event, GroupEvent):
            return effects  # the result of work for a consumer group that was converted to this one
        if self._upgrade is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")
        return self._upgrade(self, event, now_ms)

    def append_completed(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        effects = self._effects(now_ms)
        if isinstance(follow_up, Replacement):
            self._joining.replacement_written(follow_up, error, effects)
        elif isinstance(follow_up, _Assignment):  # else of a consumer group that was converted to this one
            self._assignment_written(follow_up, error, effects)
        return effects

    def metadata_changed(self, changed_topics: Collection[str], has_new_topics: bool, now_ms: int) -> Effects:
        """Do nothing: the leader of a classic group watches the topics, and joins again."""
        return Effects()

    def loaded(self, now_ms: int) -> Effects:
        effects = self._effects(now_ms)
        for member in self.members:
            restart_session(member, effects)
        if len(self.members) > self._settings.max_size:
            count = pluralize(len(self.members), "member was", "members were")
            self._rebalance.start(f"{count} loaded, more than group.max.size", effects)
        return effects

    def unloaded(self) -> Effects:
        effects = self.refuse_all_parked(ErrorCode.NOT_COORDINATOR)
        self._state.move_to(State.DEAD)
        return effects

    def refuse_all_parked(self, error: ErrorCode) -> Effects:
        """Answer all parked requests with `error`: this group is about to go."""
        effects = Effects(replay_records=False)
        for member in self.members:
            refuse_parked(self._state, member, error, effects)
        return effects

    def take_over(self, members: Iterable[Member], generation_id: int) -> None:
        """Become the stable group of these consumers of a group of another type. They keep their assignments."""
        self._state.take_over(members, generation_id)

    def rebalance(self, reason: str, now_ms: int) -> Effects:
        """Make all members join again, after `take_over`."""
        effects = self.loaded(now_ms)
        if self.is_stable:
            self._rebalance.start(reason, effects)
        return effects

    def _effects(self, now_ms: int) -> Effects:
        self._state.now_ms = now_ms
        return Effects(replay_records=False)

    # ------------------------------------------------------------------------------------------------------------ sync

    def _sync(self, sync: Sync, effects: Effects) -> None:
        state = self._state
        response = self._sync_error(sync) or RESPONSES[Request.SYNC][state.current]
        if isinstance(response, ErrorCode):
            effects.replies.append((sync.pending_reply, SyncGroupResponse(error_code=response)))
            return
        member = state.members[sync.member_id]
        state.members.not_synced.pop(sync.member_id, None)
        if not state.members.not_synced:
            effects.timers[SYNC_TIMER] = None
        if response is Action.CURRENT:
            effects.replies.append((sync.pending_reply, sync_response(state, member)))
            return
        refuse_parked(state, member, ErrorCode.REBALANCE_IN_PROGRESS, effects)  # differs from Kafka, as in `join`
        member.syncing = sync.pending_reply
        if state.members.leader == sync.member_id:
            assignments = {each.member_id: sync.assignments.get(each.member_id, b"") for each in state.members}
            effects.records.append(state.record(assignments))
            effects.follow_up = _Assignment(sync.member_id, assignments)

    def _sync_error(self, sync: Sync) -> ErrorCode | None:
        state = self._state
        error = state.member_error(sync.member_id, sync.group_instance_id)
        if error is not None:
            return error
        if sync.generation_id != state.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if _differ(sync.protocol_type, state.protocol_type) or _differ(sync.protocol_name, state.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return None

    def _assignment_written(self, written: _Assignment, error: ErrorCode | None, effects: Effects) -> None:
        if error is not None:
            clear_assignments(self._state, error, effects)
            reason = f"{error.name} when storing the assignment of {written.member_id}"
            self._rebalance.start_or_complete(reason, effects)
            return
        for member in self.members:
            member.assignment = written.assignments[member.member_id]
            syncing, member.syncing = member.syncing, None
            if syncing is not None:
                effects.replies.append((syncing, sync_response(self._state, member)))
                restart_session(member, effects)
        self._state.move_to(State.STABLE)

    # -------------------------------------------------------------------------------------- heartbeats, leaving, timers

    def _heartbeat(self, heartbeat: Heartbeat, effects: Effects) -> None:
        state = self._state
        error = state.member_error(heartbeat.member_id, heartbeat.group_instance_id)
        if error is None and heartbeat.generation_id != state.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is None:
            error = ERRORS[Request.HEARTBEAT][state.current]
            restart_session(state.members[heartbeat.member_id], effects)
        effects.replies.append((heartbeat.pending_reply, HeartbeatResponse(error_code=error)))

    def _leave(self, leave: Leave, effects: Effects) -> None:
        rows = [self._leave_one(leaving, effects) for leaving in leave.members]
        effects.replies.append((leave.pending_reply, LeaveGroupResponse(members=rows)))
        if any(row.error_code == ErrorCode.NONE for row in rows) and not self.is_empty:
            self._rebalance.start_or_complete("members left", effects)

    def _leave_one(self, leaving: Leaving, effects: Effects) -> MemberResponse:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        error: ErrorCode | None = None
        if not member_id:
            member_id = self.members.static_id(instance_id or "") or ""
        if member_id not in self.members.pending:
            error = self._state.member_error(member_id, instance_id)
        if error is None:
            remove_member(self._state, member_id, effects)
            effects.log_lines.append(LogLine("member left", {"member": member_id, "reason": leaving.reason}))
        return MemberResponse(leaving.member_id, instance_id, ErrorCode.NONE if error is None else error)

    def _timer_expired(self, expired: TimerExpired, effects: Effects) -> None:
        if expired.timer == JOIN_TIMER:
            self._rebalance.join_timer_expired(effects)
        elif expired.timer == SYNC_TIMER:
            self._rebalance.sync_timer_expired(effects)
        else:
            _, member_id = expired.timer
            self._session_expired(member_id, effects)

    def _session_expired(self, member_id: str, effects: Effects) -> None:
        members = self.members
        member = members.get(member_id)
        if (member is None and member_id not in members.pending) or (member is not None and member.is_waiting):
            return
        effects.log_lines.append(LogLine("member failed", {"member": member_id}))
        remove_member(self._state, member_id, effects)
        if member is not None and self._state.current is not State.PREPARING:
            self._rebalance.start(f"the session of member {member_id} is over", effects)
        else:
            self._rebalance.complete_if_joined(effects)

    def sessions(self) -> Iterator[MemberSession]:
        """Yield the sessions of all members. A member that is parked has done what the group waits for."""
        for member in self.members:
            is_parked = member.joining is not None or member.syncing is not None
            yield MemberSession(
                member.member_id,
                member.client_id,
                session_timer(member.member_id),
                member.session_timeout_ms,
                member.session_timeout_ms / CLASSIC_HEARTBEATS,
                is_parked,
                () if is_parked else (JOIN_TIMER, SYNC_TIMER),
            )

    # ------------------------------------------------------------------------------------------------ records, offsets

    def replay(self, record: CoordinatorRecord) -> None:
        self._state.replay(record)

    def record(self) -> CoordinatorRecord:
        """Return the record of the group as it is."""
        return self._state.record()

    def record_of_new_group(self) -> CoordinatorRecord:
        """Return the record of a group without members."""
        return self._state.record_of_new_group()

    def tombstones(self) -> list[CoordinatorRecord]:
        return [group_tombstone(self.group_id)]

    def check_commit(self, committer: Committer, partitions: Collection[tuple[str, int]]) -> dict[TimerKey, int | None]:
        """Raises KafkaError. The partitions do not matter: a generation commits whatever it reads."""
        return self._state.check_commit(committer)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Do nothing: any client may read the offsets of a classic group."""

    def check_offset_delete(self) -> None:
        self._state.check_offset_delete()

    def check_delete(self) -> None:
        self._state.check_empty()

    def is_subscribed_to(self, topic: str) -> bool:
        return self._state.is_subscribed_to(topic)

    def retention_start(self, commit_timestamp: int) -> int | None:
        return self._state.retention_start(commit_timestamp)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
