"""Seeds of the simulation: those that have failed before, and the first ones. `make simulate` runs more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.metadata.leaders import controller
from tests.effort import cases
from tests.simulation.nemesis import EVERYBODY, Step
from tests.simulation.seeds import Case, failing_cases, run, shrink
from tests.simulation.simulation import Outcome, simulate

SEEDS = cases(25)
"""About 1.5 s of processor time each."""


@pytest.mark.parametrize("case", [*failing_cases(), *map(Case, range(SEEDS))], ids=str)
def test_no_seed_finds_a_contradiction(case: Case) -> None:
    outcome = run(case)

    assert outcome.failures == [], f"repeat it: {case.command} --verbose"
    assert outcome.acknowledged > 0
    assert outcome.member_commits > 0
    assert outcome.transactions > 0


@pytest.mark.parametrize("seed", [18, 500116])
def test_a_power_failure_of_all_brokers_right_after_a_creation_leaves_no_partition_without_a_leader(seed: int) -> None:
    """None of them has the new logs on its disk when it is back, and each record is synced, so that none is lost."""
    assert simulate(seed, [Step(0.0, "blackout", EVERYBODY, 4.0)]).failures == []


@pytest.mark.skipif(controller.__file__.endswith(".so"), reason="functions of compiled modules cannot be replaced")
def test_a_partition_that_could_be_led_but_is_not_for_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is down for longer than a partition may be without a leader; no election replaces it."""
    steps = [Step(1.0, "kill", "1", 15.0)]
    assert simulate(1, steps).failures == []

    monkeypatch.setattr(controller, "choose_leader", lambda *_, **__: None)

    assert any("is not led for 10.0 s, although" in failure for failure in simulate(1, steps).failures)


@pytest.mark.process
def test_a_seed_has_the_same_run_in_every_process() -> None:
    here = simulate(1)

    code = "from tests.simulation.simulation import simulate; print(simulate(1).fingerprint)"
    root = Path(__file__).parents[2]
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {b"%d\n" % here.fingerprint}


def test_a_failing_schedule_is_shrunk_to_the_steps_that_matter() -> None:
    steps = [Step(float(number), "clock", "1", 1.0) for number in range(9)]
    outcome = Outcome(7, ["failed"], steps, 0, 0, 0, 0)

    shrunk = shrink(outcome, lambda case: case.steps is not None and {2, 7} <= set(case.steps))

    assert shrunk == Case(7, (2, 7))
