"""How members enter a classic group, or enter it again (`group` draws what that means in each state).

| who | what |
|---|---|
| no id, static, instance known | takes the place of the member with that instance id, which is fenced (KIP-345) |
| no id, static, instance new | is let in |
| no id, from version 4 on | is given an id to come back with (KIP-394); does not count as a member until then |
| no id, before | is let in |
| an id that was given out | is let in |
| a member | is parked, or gets the present generation if nothing has changed |

A new member that is parked may be a client that has gone, so its session ends after five minutes. A static member that
comes back to a stable group causes no rebalance, unless another protocol would be chosen: the record of its new id is
written, and then it goes on where it was.
"""

from __future__ import annotations

import msgspec

from odradek.broker.coordinator.classic_group.events import Join
from odradek.broker.coordinator.classic_group.members import Member, new_member
from odradek.broker.coordinator.classic_group.rebalance import Rebalance, refused_join
from odradek.broker.coordinator.classic_group.state import State, session_timer
from odradek.broker.coordinator.runtime.events import Effects, LogLine
from odradek.protocol.errors import ErrorCode

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member may be parked before it is taken for gone (Kafka's `GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`)."""


class Replacement(msgspec.Struct, frozen=True):
    """Follow-up of a static member that came back while the group is stable."""

    old: Member
    new_id: str
    leader_before: str | None
    may_skip_assignment: bool


class Joining(Rebalance):
    """The group as far as joining goes."""

    def _join(self, join: Join, effects: Effects) -> None:
        is_known = bool(join.member_id)
        error = self._why_not_join(join)
        if error is not None:
            told_id = "" if error is ErrorCode.GROUP_MAX_SIZE_REACHED else join.member_id
            effects.replies.append((join.pending_reply, refused_join(error, told_id)))
        elif is_known:
            self._join_known(join, effects)
        elif join.group_instance_id is not None:
            self._join_static(join, join.group_instance_id, effects)
        elif join.requires_known_member_id:
            self.members.pending[join.new_member_id] = None
            effects.timers[session_timer(join.new_member_id)] = join.session_timeout_ms
            reply = refused_join(ErrorCode.MEMBER_ID_REQUIRED, join.new_member_id)
            effects.replies.append((join.pending_reply, reply))
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
            effects.replies.append(
                (join.pending_reply, self._joined(member, with_members=self.current is State.COMPLETING))
            )
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
        effects.log_lines.append(
            LogLine("static member replaced", {"instance": group_instance_id, "old_member": old_id})
        )
        reason = f"static member {group_instance_id} came back; client reason: {join.reason}"
        if self.current is not State.STABLE:
            # Who is to assign may know the old id, so an assignment under way would miss the new one.
            self._rebalance_or_go_on(reason, effects)
        elif self.members.choose_protocol() != self.protocol_name:
            self._rebalance_or_go_on(reason, effects)
        else:
            effects.records.append(self.record())
            effects.follow_up = Replacement(old, join.new_member_id, leader_before, join.may_skip_assignment)

    def _replacement_stored(self, replacement: Replacement, error: ErrorCode | None, effects: Effects) -> None:
        member = self.members[replacement.new_id]
        pending_reply = self.members.take_joining(member)
        assert pending_reply is not None
        if error is not None:
            self.members.take_back_static(replacement.old, replacement.new_id)
            self.members.leader = replacement.leader_before
            effects.timers[session_timer(replacement.new_id)] = None
            self._expect_life(replacement.old, effects)
            effects.replies.append((pending_reply, refused_join(error, "")))
            return
        reply = self._joined(member, with_members=replacement.may_skip_assignment)
        if replacement.may_skip_assignment:
            reply.skip_assignment = self.members.leader == member.member_id
        else:
            # A client from before KIP-814 that learns that it leads would assign; it is told the old id instead.
            reply.leader = replacement.leader_before or ""
        effects.replies.append((pending_reply, reply))

    def _add(self, join: Join, member_id: str, effects: Effects) -> None:
        if not len(self.members):
            self._protocol_type = join.protocol_type
        if self.current is State.PREPARING and self._initial_wait is not None:
            self._more_came = True
        self.members.add(new_member(join, member_id))
        effects.timers[session_timer(member_id)] = NEW_MEMBER_TIMEOUT_MS
        self._rebalance_or_go_on(f"new member {member_id}; client reason: {join.reason}", effects)
