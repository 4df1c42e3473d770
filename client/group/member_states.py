"""The states of a group member: one table, which `group` consults at each event.

| state | what it is |
|---|---|
| UNSUBSCRIBED | no subscription |
| DUE | subscribed; the next `poll` joins |
| JOINING | a join is under way |
| JOINING_AGAIN | a join is under way, and there is a reason for another one, which follows at once |
| MEMBER | joined: records are read, heartbeats are sent |
| LEAVING | `unsubscribe` gives up what is owned, and leaves |
| CLOSED | nothing happens any more |

What an event makes of each state; empty: nothing.

| state | SUBSCRIBE | UNSUBSCRIBE | JOIN | REASON | JOINED | FAILED | LEFT | STAYED | CLOSE |
|---|---|---|---|---|---|---|---|---|---|
| UNSUBSCRIBED | DUE | LEAVING | | | | | | | CLOSED |
| DUE | | LEAVING | JOINING | | | | | | CLOSED |
| JOINING | JOINING_AGAIN | LEAVING | | JOINING_AGAIN | MEMBER | DUE | | | CLOSED |
| JOINING_AGAIN | | LEAVING | | | JOINING | DUE | | | CLOSED |
| MEMBER | DUE | LEAVING | | DUE | | | | | CLOSED |
| LEAVING | | | | | | | UNSUBSCRIBED | DUE | CLOSED |
| CLOSED | | | | | | | | | |

A reason to join that comes during a join leads to another join. While `unsubscribe` runs, the events of a join change
nothing, and a subscription that the listener makes is dropped.

During a join, and while `unsubscribe` runs, the owned partitions change (`Change`). A request to join counts as a
heartbeat; while partitions change, both protocols have to send others (`heartbeat`):

| state | no change | UNDER_WAY | LISTENER |
|---|---|---|---|
| JOINING, JOINING_AGAIN | none | keep alive | keep alive |
| LEAVING | keep alive | keep alive | keep alive |
| all others | ordinary | | |

A program that waits for a join is in `poll`, so that time does not count for `max_poll_interval_ms`. The time that its
listener takes does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """What a member does; see the module's docstring."""

    UNSUBSCRIBED = "unsubscribed"
    DUE = "due"
    JOINING = "joining"
    JOINING_AGAIN = "joining again"
    MEMBER = "member"
    LEAVING = "leaving"
    CLOSED = "closed"

    @property
    def is_joining(self) -> bool:
        """Whether a join is under way."""
        return self in {State.JOINING, State.JOINING_AGAIN}

    @property
    def needs_join(self) -> bool:
        """Whether `poll` has to wait for a join, which is due or under way."""
        return self is State.DUE or self.is_joining

    def after(self, event: Event) -> State:
        """The state that the event leads to."""
        return TABLE[self].get(event, self)


class Event(Enum):
    """What happens to a member."""

    SUBSCRIBE = "the user subscribes"
    UNSUBSCRIBE = "the user, or the listener, unsubscribes"
    JOIN = "a poll begins a join"
    REASON = "a heartbeat, the metadata or the join itself found a reason to join"
    JOINED = "a join has ended well"
    FAILED = "a join has raised, or was cancelled"
    LEFT = "unsubscribing has ended"
    STAYED = "unsubscribing has raised, or was cancelled: the subscription stands"
    CLOSE = "the user closes the consumer"


class Change(Enum):
    """How far a change of the owned partitions is."""

    NONE = "no change"
    UNDER_WAY = "offsets are committed or read"
    ASSIGNING = "the listener hears what was assigned"
    GIVING_UP = "the listener hears what was revoked or lost"

    @property
    def calls_listener(self) -> bool:
        """Whether the listener runs."""
        return self in {Change.ASSIGNING, Change.GIVING_UP}


class Heartbeat(Enum):
    """Which heartbeat is due."""

    NONE = "none: the request to join counts as one"
    KEEP_ALIVE = "one that says nothing about partitions"
    ORDINARY = "one that may find a reason to join"


TABLE: Final[Mapping[State, Mapping[Event, State]]] = {
    State.UNSUBSCRIBED: {
        Event.SUBSCRIBE: State.DUE,
        Event.UNSUBSCRIBE: State.LEAVING,
        Event.CLOSE: State.CLOSED,
    },
    State.DUE: {
        Event.UNSUBSCRIBE: State.LEAVING,
        Event.JOIN: State.JOINING,
        Event.CLOSE: State.CLOSED,
    },
    State.JOINING: {
        Event.SUBSCRIBE: State.JOINING_AGAIN,
        Event.UNSUBSCRIBE: State.LEAVING,
        Event.REASON: State.JOINING_AGAIN,
        Event.JOINED: State.MEMBER,
        Event.FAILED: State.DUE,
        Event.CLOSE: State.CLOSED,
    },
    State.JOINING_AGAIN: {
        Event.UNSUBSCRIBE: State.LEAVING,
        Event.JOINED: State.JOINING,
        Event.FAILED: State.DUE,
        Event.CLOSE: State.CLOSED,
    },
    State.MEMBER: {
        Event.SUBSCRIBE: State.DUE,
        Event.UNSUBSCRIBE: State.LEAVING,
        Event.REASON: State.DUE,
        Event.CLOSE: State.CLOSED,
    },
    State.LEAVING: {
        Event.LEFT: State.UNSUBSCRIBED,
        Event.STAYED: State.DUE,
        Event.CLOSE: State.CLOSED,
    },
    State.CLOSED: {},
}


def heartbeat(state: State, change: Change) -> Heartbeat:
    """Return which heartbeat a member owes in this state."""
    if state.is_joining:
        return Heartbeat.NONE if change is Change.NONE else Heartbeat.KEEP_ALIVE
    return Heartbeat.KEEP_ALIVE if state is State.LEAVING else Heartbeat.ORDINARY
