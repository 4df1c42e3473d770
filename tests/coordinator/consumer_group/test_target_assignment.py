from __future__ import annotations

import pytest

from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.target_assignment import is_due

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(("passed_ms", "expected"), [(0, False), (999, False), (1000, True), (-1, True)])
def test_a_target_is_due_after_the_interval_or_when_the_clock_was_set_back(passed_ms: int, expected: bool) -> None:
    state = GroupState("g")
    state.target_epoch, state.target_timestamp = 1, NOW_MS
    settings = ConsumerGroupSettings(assignment_interval_ms=1000)

    assert is_due(state, 2, settings, NOW_MS + passed_ms) is expected
    assert not is_due(state, 1, settings, NOW_MS + passed_ms)
