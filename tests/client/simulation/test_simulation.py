"""Seeds of the simulated group. `make simulate-members` runs more."""

from __future__ import annotations

import pytest

from tests.client.simulation.simulation import simulate


@pytest.mark.parametrize("seed", range(3))
def test_no_seed_finds_a_contradiction(seed: int) -> None:
    outcome = simulate(seed)

    assert outcome.failures == [], "\n".join(outcome.trace[-100:])
    assert outcome.records > 0
    assert outcome.commits > 0
    assert outcome.assignments > 0
