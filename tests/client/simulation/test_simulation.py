"""Seeds of the simulated group. `make simulate-members` runs more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.simulation.simulation import simulate


@pytest.mark.parametrize("seed", range(3))
def test_no_seed_finds_a_contradiction(seed: int) -> None:
    outcome = simulate(seed)

    assert outcome.failures == [], "\n".join(outcome.trace[-100:])
    assert outcome.records > 0
    assert outcome.commits > 0
    assert outcome.assignments > 0


@pytest.mark.process
def test_the_command_runs_seeds_in_processes() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.simulation", "--seeds", "2", "--processes", "1"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("2 seeds, 0 failed: ")
