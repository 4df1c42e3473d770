"""JoinGroup: how members enter a classic group, or join it again.

| JoinGroup with | result |
|---|---|
| no id, a known instance id | takes the place of the static member with that instance id, which is fenced (KIP-345) |
| no id, a new instance id | a new member |
| no id, version 4 or later | gets an id to come back with (KIP-394); it is not a member until then |
| no id, earlier versions | a new member |
| an id that was given out | a new member; with an instance id UNKNOWN_SERVER_ERROR, as in Kafka |
| the id of a member | `state_table` says |

A new member that is parked may be a client that is gone, so its session ends after five minutes. A static member that
comes back to a stable group causes no rebalance, unless another protocol would be chosen: the record with its new id is
written, and it gets its old assignment.
"""

from __future__ import annotations

import msgspec

from odradek.broker.coordinator.classic_group.events import Join
from odradek.broker.coordinator.classic_group.member_effects import (
    join_error,
    join_response,
    refuse_parked,
    restart_session,
)
from odradek.broker.coordinator.classic_group.members import Member, new_member
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings, Rebalance
from odradek.broker.coordinator.classic_group.state import ClassicGroupState, session_timer
from odradek.broker.coordinator.classic_group.state_table import RESPONSES, Action, Request, State
from odradek.broker.coordinator.runtime.events import Effects, LogLine
from odradek.protocol.errors import ErrorCode

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""The time after which a parked new member counts as gone (Kafka's `GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`)."""


_WITHOUT_ID = frozenset({ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNKNOWN_SERVER_ERROR})
"""The errors whose response has no member id."""


class Replacement(msgspec.Struct, frozen=True):
    """Follow-up of the return of a static member to a stable group."""

    old: Member
    new_id: str
    leader_before: str | None
    may_skip_assignment: bool


class Joining:
    """The JoinGroup requests of one group."""

    def __init__(self, state: ClassicGroupState, rebalance: Rebalance, settings: ClassicSettings) -> None:
        self._state = state
        self._rebalance = rebalance
        self._settings = settings

    def join(self, join: Join, effects: Effects) -> None:
        state = self._state
        has_id = bool(join.member_id)
        error = self._join_error(join)
        if error is not None:
            member_id = "" if error in _WITHOUT_ID else join.member_id
            effects.replies.append((join.pending_reply, join_error(error, member_id)))
        elif has_id:
            self._join_with_id(join, effects)
        elif join.group_instance_id is not None:
            self._join_static(join, join.group_instance_id, effects)
        elif join.requires_known_member_id:
            state.members.pending[join.new_member_id] = None
            effects.timers[session_timer(join.new_member_id)] = join.session_timeout_ms
            effects.replies.append((join.pending_reply, join_error(ErrorCode.MEMBER_ID_REQUIRED, join.new_member_id)))
        else:
            self._add(join, join.new_member_id, effects)
        if not state.is_stored and not has_id and not effects.records:
            # A group exists from the first attempt to join on, even if that fails.
            effects.records.append(state.record_of_new_group())
        state.is_stored = state.is_stored or bool(effects.records)

    def _join_error(self, join: Join) -> ErrorCode | None:
        state = self._state
        if not self._has_room_for(join.member_id):
            state.members.remove(join.member_id)
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if state.current is State.EMPTY:
            is_consistent = bool(join.protocol_type) and bool(join.protocols)
        else:
            is_consistent = join.protocol_type == state.protocol_type and state.members.supports_any(join.protocols)
        if not is_consistent:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if join.member_id in state.members.pending:
            return None if join.group_instance_id is None else ErrorCode.UNKNOWN_SERVER_ERROR
        if not join.member_id:
            return None
        return state.member_error(join.member_id, join.group_instance_id)

    def _has_room_for(self, member_id: str) -> bool:
        state = self._state
        if state.current is State.EMPTY:
            return True
        member = state.members.get(member_id)
        if state.current is State.PREPARING:
            # Only members that have joined count, so that of a group that is too large the last to join are refused.
            is_in = member is not None and member.joining is not None
            return is_in or state.members.joined_count < self._settings.max_size
        return member is not None or len(state.members) < self._settings.max_size

    def _join_with_id(self, join: Join, effects: Effects) -> None:
        state = self._state
        if join.member_id in state.members.pending:
            self._add(join, join.member_id, effects)
            return
        member = state.members[join.member_id]
        request = Request.JOIN_CHANGED
        if member.protocols == join.protocols:
            is_leader = state.members.leader == join.member_id
            # The leader joins again to assign anew. Another member has not received its response, or thinks so.
            request = Request.JOIN_UNCHANGED_LEADER if is_leader else Request.JOIN_UNCHANGED
        response = RESPONSES[request][state.current]
        if isinstance(response, ErrorCode):
            effects.replies.append((join.pending_reply, join_error(response, join.member_id)))
        elif response is Action.CURRENT:
            with_members = state.current is State.COMPLETING
            effects.replies.append((join.pending_reply, join_response(state, member, with_members=with_members)))
        else:
            # Differs from Kafka, which never answers a request that waits when the member sends another one.
            refuse_parked(state, member, ErrorCode.REBALANCE_IN_PROGRESS, effects)
            state.members.rejoin(member, join)
            reason = f"member {member.member_id} joins again; client reason: {join.reason}"
            self._rebalance.start_or_complete(reason, effects)

    def _join_static(self, join: Join, group_instance_id: str, effects: Effects) -> None:
        state = self._state
        old_id = state.members.static_id(group_instance_id)
        if old_id is None:
            self._add(join, join.new_member_id, effects)
            return
        leader_before = state.members.leader
        old, member = state.members.replace_static(old_id, join.new_member_id)
        refuse_parked(state, old, ErrorCode.FENCED_INSTANCE_ID, effects)
        effects.timers[session_timer(old_id)] = None
        state.members.rejoin(member, join)
        restart_session(member, effects)
        fields = {"instance": group_instance_id, "old_member": old_id}
        effects.log_lines.append(LogLine("static member replaced", fields))
        if state.current is not State.STABLE or state.members.choose_protocol() != state.protocol_name:
            # In CompletingRebalance the leader may have the old id, and its assignment would miss the new one.
            reason = f"static member {group_instance_id} came back; client reason: {join.reason}"
            self._rebalance.start_or_complete(reason, effects)
        else:
            effects.records.append(state.record())
            effects.follow_up = Replacement(old, join.new_member_id, leader_before, join.may_skip_assignment)

    def replacement_written(self, replacement: Replacement, error: ErrorCode | None, effects: Effects) -> None:
        """Answer the static member that came back: its record is written, or could not be because of `error`."""
        members = self._state.members
        member = members[replacement.new_id]
        joining = members.take_joining(member)
        assert joining is not None
        if error is not None:
            members.restore_static(replacement.old, replacement.new_id)
            members.leader = replacement.leader_before
            effects.timers[session_timer(replacement.new_id)] = None
            restart_session(replacement.old, effects)
            effects.replies.append((joining, join_error(error, "")))
            return
        response = join_response(self._state, member, with_members=replacement.may_skip_assignment)
        if replacement.may_skip_assignment:
            response.skip_assignment = members.leader == member.member_id
        else:
            # A client from before KIP-814 that finds itself the leader would assign, so it gets the old leader's id.
            response.leader = replacement.leader_before or ""
        effects.replies.append((joining, response))

    def _add(self, join: Join, member_id: str, effects: Effects) -> None:
        state = self._state
        if not len(state.members):
            state.protocol_type = join.protocol_type
        self._rebalance.member_added()
        state.members.add(new_member(join, member_id))
        effects.timers[session_timer(member_id)] = NEW_MEMBER_TIMEOUT_MS
        self._rebalance.start_or_complete(f"new member {member_id}; client reason: {join.reason}", effects)
