"""The states of a classic group, which state follows which, and the response to each request of a member in each state.

```
          ┌────────── no member is left ───────┐
          ▼                                    │
      ┌───────┐  join   ┌────────────────────┐ │ all have joined,   ┌─────────────────────┐  leader's sync  ┌────────┐
 new─►│ Empty │────────►│ PreparingRebalance ├─┴─ or timeout ──────►│ CompletingRebalance │────(stored)────►│ Stable │
      └───────┘         └────────────────────┘                      └──────────┬──────────┘                 └───┬────┘
                                  ▲                                            │ join, leave, a member fails    │
                                  └────────────────────────────────────────────┴────────────────────────────────┘
   any ──► Dead: the partition moved to another broker
```

Kafka's `ClassicGroupState` is the model.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from odradek.protocol.errors import ErrorCode

T = TypeVar("T")


class State(Enum):
    """The states, by the names in responses."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY, State.DEAD}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset(),
}
CAN_REBALANCE = frozenset(state for state, following in TRANSITIONS.items() if State.PREPARING in following)


class Request(Enum):
    """The requests of a member. A JoinGroup is unchanged if it has the protocols of the one before."""

    JOIN_UNCHANGED = "JoinGroup, unchanged"
    JOIN_UNCHANGED_LEADER = "JoinGroup of the leader, unchanged"
    JOIN_CHANGED = "JoinGroup, changed"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    COMMIT = "OffsetCommit"


class Action(Enum):
    """The responses that are no error code."""

    CURRENT = "the current generation, or the assignment in it"
    PARK = "none yet: the request waits. A JoinGroup starts a rebalance, unless one has started"


def _by_state(*responses: T) -> dict[State, T]:
    return dict(zip(State, responses, strict=True))


_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
_REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS
_DEAD = ErrorCode.COORDINATOR_NOT_AVAILABLE
_NONE = ErrorCode.NONE
_CURRENT, _PARK = Action.CURRENT, Action.PARK

RESPONSES: dict[Request, dict[State, ErrorCode | Action]] = {
    #                                          Empty     Preparing     Completing    Stable    Dead
    Request.JOIN_UNCHANGED:          _by_state(_UNKNOWN, _PARK,        _CURRENT,     _CURRENT, _DEAD),
    Request.JOIN_UNCHANGED_LEADER:   _by_state(_UNKNOWN, _PARK,        _CURRENT,     _PARK,    _DEAD),
    Request.JOIN_CHANGED:            _by_state(_UNKNOWN, _PARK,        _PARK,        _PARK,    _DEAD),
    Request.SYNC:                    _by_state(_UNKNOWN, _REBALANCING, _PARK,        _CURRENT, _DEAD),
}  # fmt: skip
ERRORS: dict[Request, dict[State, ErrorCode]] = {
    Request.HEARTBEAT:               _by_state(_UNKNOWN, _REBALANCING, _NONE,        _NONE,    _DEAD),
    Request.COMMIT:                  _by_state(_UNKNOWN, _NONE,        _REBALANCING, _NONE,    _DEAD),
}  # fmt: skip
"""Responses to a member that is known and in the current generation.

Other requests are refused in every state, with UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID or
INCONSISTENT_GROUP_PROTOCOL.
"""
