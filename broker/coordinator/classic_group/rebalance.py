"""How a classic group rebalances: it waits for its members, begins a generation, and tells them (`group` draws it).

```
somebody comes, goes, changes ─► prepare ─► PreparingRebalance ─┬─ all have joined ───┬─► CompletingRebalance, answered
                                                                └─ time is up:         │
                                                                   the others are out ─┴─ nobody is left ─► Empty
```
A group that was empty waits `initial_rebalance_delay_ms` for more members after each new one, up to the rebalance
timeout.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from odradek.broker.coordinator.classic_group.members import Member
from odradek.broker.coordinator.classic_group.state import ClassicGroupState, State, session_timer
from odradek.broker.coordinator.runtime.events import Effects, LogLine, TimerKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.sync_group import SyncGroupResponse

JOIN_TIMER: TimerKey = ("join", "")
SYNC_TIMER: TimerKey = ("sync", "")
_CAN_REBALANCE = frozenset({State.EMPTY, State.COMPLETING, State.STABLE})


class ClassicSettings(msgspec.Struct, frozen=True):
    """What the broker's configuration says of classic groups."""

    initial_rebalance_delay_ms: int = 3000
    max_size: int = 0x7FFFFFFF


class Rebalance(ClassicGroupState):
    """The group as far as rebalances go."""

    def __init__(self, group_id: str, settings: ClassicSettings, now_ms: int) -> None:
        super().__init__(group_id, now_ms)
        self._settings = settings
        self._initial_wait: tuple[int, int] | None = None  # of an initial rebalance: the delay, what may follow it
        self._more_came = False

    def _rebalance_or_go_on(self, reason: str, effects: Effects) -> None:
        if self.current in _CAN_REBALANCE:
            self._prepare_rebalance(reason, effects)
        elif self.current is State.PREPARING and self._initial_wait is None and self.members.all_joined:
            self._complete_join(effects)

    def _prepare_rebalance(self, reason: str, effects: Effects) -> None:
        if self.current is State.COMPLETING:
            self._forget_assignments(ErrorCode.REBALANCE_IN_PROGRESS, effects)
        self.members.not_synced.clear()
        effects.timers[SYNC_TIMER] = None
        was_empty = self.current is State.EMPTY
        self.move_to(State.PREPARING)
        effects.log_lines.append(LogLine("rebalancing", {"generation": self.generation_id, "reason": reason}))
        if was_empty:
            delay = self._settings.initial_rebalance_delay_ms
            self._initial_wait = delay, max(self.members.rebalance_timeout_ms - delay, 0)
            self._more_came = False
            effects.timers[JOIN_TIMER] = delay
        elif self.members.all_joined:
            self._complete_join(effects)
        else:
            effects.timers[JOIN_TIMER] = self.members.rebalance_timeout_ms

    def _join_time_is_up(self, effects: Effects) -> None:
        if self._initial_wait is not None:
            waited, remaining = self._initial_wait
            if self._more_came and remaining:
                self._more_came = False
                delay = min(self._settings.initial_rebalance_delay_ms, remaining)
                self._initial_wait = delay, max(remaining - waited, 0)
                effects.timers[JOIN_TIMER] = delay
                return
        self._complete_join(effects)

    def _complete_join(self, effects: Effects) -> None:
        self._initial_wait = None
        effects.timers[JOIN_TIMER] = None
        gone = [each for each in self.members if each.joining is None and each.group_instance_id is None]
        for member in gone:
            self._remove(member.member_id, effects)
        if gone:
            effects.log_lines.append(LogLine("members did not join", {"members": [each.member_id for each in gone]}))
        if len(self.members) and not self.members.elect_joined_leader():
            # Static members alone, and none has come back yet: they may, until their sessions end.
            effects.timers[JOIN_TIMER] = self.members.rebalance_timeout_ms
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
            effects.log_lines.append(LogLine("group is empty", {"generation": self.generation_id}))

    def _begin_generation(self, effects: Effects) -> None:
        self.protocol_name = self.members.choose_protocol()
        self._topics = self.subscriptions()
        self.move_to(State.COMPLETING)
        for member in self.members:
            pending_reply = self.members.take_joining(member)
            if pending_reply is not None:
                effects.replies.append((pending_reply, self._joined(member, with_members=True)))
            self._expect_life(member, effects)
            member.is_new = False
            self.members.not_synced[member.member_id] = None
        effects.timers[SYNC_TIMER] = self.members.rebalance_timeout_ms
        fields = {"generation": self.generation_id, "protocol": self.protocol_name, "members": len(self.members)}
        effects.log_lines.append(LogLine("members have joined", fields))

    def _forget_assignments(self, error: ErrorCode, effects: Effects) -> None:
        for member in self.members:
            member.assignment = b""
            pending_reply, member.syncing = member.syncing, None
            if pending_reply is not None:
                effects.replies.append((pending_reply, SyncGroupResponse(error_code=error)))
                self._expect_life(member, effects)

    # ---------------------------------------------------------------------------------------------- members, answers

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
            effects.replies.append((joining, refused_join(error, told_id)))
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

    def _member_rows(self) -> Iterator[JoinGroupResponseMember]:
        for each in self.members:
            yield JoinGroupResponseMember(each.member_id, each.group_instance_id, each.metadata(self.protocol_name))

    def _synced(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self._protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )


def refused_join(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    """The answer to a JoinGroup that fails; the id is the one to come back with, or none."""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
