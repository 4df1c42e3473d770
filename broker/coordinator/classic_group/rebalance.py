"""The rebalance of a classic group: it waits for its members to join, then begins a generation.

```
members change ─► start ─► PreparingRebalance ─┬─ all have joined ─────────┬─► CompletingRebalance: joins are answered
                                               └─ join timer expires:      │
                                                  the others are removed ──┴─ no member is left ─► Empty
```
A group that was empty waits `initial_rebalance_delay_ms` for more members after each new one, up to the rebalance
timeout.
"""

from __future__ import annotations

from typing import Any

import msgspec

from odradek.broker.coordinator.classic_group.member_effects import (
    clear_assignments,
    join_response,
    remove_member,
    restart_session,
)
from odradek.broker.coordinator.classic_group.state import ClassicGroupState
from odradek.broker.coordinator.classic_group.state_table import CAN_REBALANCE, State
from odradek.broker.coordinator.runtime.events import Effects, LogLine, TimerKey
from odradek.protocol.errors import ErrorCode

JOIN_TIMER: TimerKey = ("join", "")
SYNC_TIMER: TimerKey = ("sync", "")


class ClassicSettings(msgspec.Struct, frozen=True):
    """The broker's configuration of classic groups."""

    initial_rebalance_delay_ms: int = 3000
    max_size: int = 0x7FFFFFFF


class Rebalance:
    """The rebalances of one group."""

    def __init__(self, state: ClassicGroupState, settings: ClassicSettings) -> None:
        self._state = state
        self._settings = settings
        self._initial_wait: tuple[int, int] | None = None  # in an initial rebalance: this delay, and the rest after it
        self._has_new_members = False

    def start_or_complete(self, reason: str, effects: Effects) -> None:
        """Start a rebalance because members changed; if one is under way, complete it if all members have joined."""
        if self._state.current in CAN_REBALANCE:
            self.start(reason, effects)
        elif self._initial_wait is None:
            self.complete_if_joined(effects)

    def start(self, reason: str, effects: Effects) -> None:
        state = self._state
        members = state.members
        if state.current is State.COMPLETING:
            clear_assignments(state, ErrorCode.REBALANCE_IN_PROGRESS, effects)
        members.not_synced.clear()
        effects.timers[SYNC_TIMER] = None
        was_empty = state.current is State.EMPTY
        state.move_to(State.PREPARING)
        effects.log_lines.append(LogLine("rebalancing", {"generation": state.generation_id, "reason": reason}))
        if was_empty:
            delay = self._settings.initial_rebalance_delay_ms
            self._initial_wait = delay, max(members.rebalance_timeout_ms - delay, 0)
            self._has_new_members = False
            effects.timers[JOIN_TIMER] = delay
        elif members.all_joined:
            self._complete_join(effects)
        else:
            effects.timers[JOIN_TIMER] = members.rebalance_timeout_ms

    def complete_if_joined(self, effects: Effects) -> None:
        """Begin the generation if the group waits for its members, and all have joined."""
        if self._state.current is State.PREPARING and self._state.members.all_joined:
            self._complete_join(effects)

    def member_added(self) -> None:
        """Prolong the initial wait, if it is under way: a new member is about to be added."""
        if self._state.current is State.PREPARING and self._initial_wait is not None:
            self._has_new_members = True

    def join_timer_expired(self, effects: Effects) -> None:
        """Prolong the initial wait if new members came; else begin the generation of those that have joined."""
        if self._initial_wait is not None:
            waited, remaining = self._initial_wait
            if self._has_new_members and remaining:
                self._has_new_members = False
                delay = min(self._settings.initial_rebalance_delay_ms, remaining)
                self._initial_wait = delay, max(remaining - waited, 0)
                effects.timers[JOIN_TIMER] = delay
                return
        self._complete_join(effects)

    def sync_timer_expired(self, effects: Effects) -> None:
        """Remove the members that have not synced."""
        missing = list(self._state.members.not_synced)
        for member_id in missing:
            remove_member(self._state, member_id, effects)
        if missing:
            self.start(f"members did not sync: {', '.join(missing)}", effects)

    def _complete_join(self, effects: Effects) -> None:
        state = self._state
        self._initial_wait = None
        effects.timers[JOIN_TIMER] = None
        gone = [each.member_id for each in state.members if each.joining is None and each.group_instance_id is None]
        for member_id in gone:
            remove_member(state, member_id, effects)
        if gone:
            effects.log_lines.append(LogLine("members did not join", {"members": gone}))
        if len(state.members) and not state.members.elect_joined_leader():
            # All members are static and none has joined. They may until their sessions end.
            effects.timers[JOIN_TIMER] = state.members.rebalance_timeout_ms
            return
        state.begin_generation()
        fields: dict[str, Any] = {"generation": state.generation_id}
        if len(state.members):
            state.move_to(State.COMPLETING)
            self._answer_joins(effects)
            fields |= {"protocol": state.protocol_name, "members": len(state.members)}
            effects.log_lines.append(LogLine("members have joined", fields))
        else:
            state.move_to(State.EMPTY)
            effects.records.append(state.record())
            effects.log_lines.append(LogLine("group is empty", fields))

    def _answer_joins(self, effects: Effects) -> None:
        members = self._state.members
        for member in members:
            joining = members.take_joining(member)
            if joining is not None:
                effects.replies.append((joining, join_response(self._state, member, with_members=True)))
            restart_session(member, effects)
            member.is_new = False
            members.not_synced[member.member_id] = None
        effects.timers[SYNC_TIMER] = members.rebalance_timeout_ms
