"""The table of a member's states: its page in the docstring says what it does, and no request is forgotten."""

from __future__ import annotations

import itertools

import pytest

from odradek.client.group import member_states
from odradek.client.group.member_states import TABLE, Change, Event, Heartbeat, State, heartbeat

OPEN = [state for state in State if state not in {State.UNSUBSCRIBED, State.LEAVING, State.CLOSED}]
HEARTBEATS = {"none": Heartbeat.NONE, "keep alive": Heartbeat.KEEP_ALIVE, "ordinary": Heartbeat.ORDINARY}


def page(number: int) -> list[list[str]]:
    """The cells of the n-th table of the docstring, with its heads."""
    lines = (member_states.__doc__ or "").splitlines()
    blocks = [
        list(block) for is_table, block in itertools.groupby(lines, lambda line: line.startswith("|")) if is_table
    ]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in blocks[number] if "---" not in line]


def test_the_page_says_what_the_table_does() -> None:
    heads, *rows = page(1)
    events = [Event[head] for head in heads[1:]]
    written = {
        State[name]: {event: State[cell] for event, cell in zip(events, cells, strict=True) if cell}
        for name, *cells in rows
    }

    assert events == list(Event)
    assert written == {state: dict(row) for state, row in TABLE.items()}


def test_the_page_says_which_heartbeats_are_due() -> None:
    _, *rows = page(2)
    written = {name.strip(): cells for names, *cells in rows for name in names.split(",")}
    for state in State:
        none, under_way, listener = written.get(state.name, written["all others"])
        assert heartbeat(state, Change.NONE) is HEARTBEATS[none]
        assert heartbeat(state, Change.UNDER_WAY) is HEARTBEATS[under_way or none]
        assert heartbeat(state, Change.ASSIGNING) is HEARTBEATS[listener or none]
        assert heartbeat(state, Change.GIVING_UP) is HEARTBEATS[listener or none]


@pytest.mark.parametrize("request_to_join", [Event.SUBSCRIBE, Event.REASON])
@pytest.mark.parametrize("state", OPEN)
def test_a_request_to_join_is_met_by_a_join_that_begins_afterwards(state: State, request_to_join: Event) -> None:
    state = state.after(request_to_join)
    if state is State.JOINING_AGAIN:
        state = state.after(Event.JOINED)
        assert state is State.JOINING
    else:
        assert state is State.DUE


@pytest.mark.parametrize("state", OPEN)
def test_after_unsubscribing_whatever_a_join_does_is_ignored(state: State) -> None:
    leaving = state.after(Event.UNSUBSCRIBE)
    for event in (Event.JOIN, Event.REASON, Event.JOINED, Event.FAILED):
        assert leaving.after(event) is State.LEAVING
        assert leaving.after(Event.LEFT).after(event) is State.UNSUBSCRIBED
