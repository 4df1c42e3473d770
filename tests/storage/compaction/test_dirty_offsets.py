"""The states of offsets in the dirty part."""

from __future__ import annotations

from odradek.broker.storage.compaction.dirty_offsets import LIVE, SUPERSEDED, TOMBSTONE, DirtyOffsets


def test_states_are_those_that_were_set() -> None:
    dirty = DirtyOffsets(100, 10)
    dirty.set_state(101, SUPERSEDED)
    dirty.set_state(103, TOMBSTONE)
    dirty.set_state(103, SUPERSEDED)
    states = dirty.states(100, 103)
    assert states is not None
    assert list(states) == [LIVE, SUPERSEDED, LIVE, SUPERSEDED]


def test_offsets_outside_have_no_state() -> None:
    dirty = DirtyOffsets(100, 10)
    dirty.set_state(110, SUPERSEDED)
    assert dirty.states(99, 105) is None
    assert dirty.states(105, 110) is None
    assert dirty.states(105, 109) is not None
