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
    assert printed("--seeds", "2", "--processes", "1").startswith("2 seeds, 0 failed: ")


@pytest.mark.process
def test_a_seed_has_the_same_run_in_every_process() -> None:
    """Seed 0 has a broker that loses many connections at once."""
    assert printed("--seed", "0", hash_seed="1") == printed("--seed", "0", hash_seed="2")


def printed(*arguments: str, hash_seed: str = "random") -> str:
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-m", "tests.client.simulation", *arguments],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
