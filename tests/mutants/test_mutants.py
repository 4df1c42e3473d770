"""Brokers with a defect each, which a directed test must find, or the simulation within a few seeds.

By simulation, here are those that nearly every seed finds, so that a change elsewhere, which changes all runs, breaks
no test. `make simulate-mutants` searches for the others, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from odradek.broker.replication import partition
from tests.mutants.directed import FOUND
from tests.mutants.mutants import MUTANTS, Mutant, UnusedMutantError, find

pytestmark = pytest.mark.skipif(
    not str(partition.__file__).endswith(".py"), reason="the methods of compiled classes cannot be replaced"
)

FEW_SEEDS = range(12)
"""A run takes about 1.5 s of processor time; most mutants are found by the first or second."""

BY_SIMULATION = [
    "acknowledge before the high watermark",
    "the proposed ISR counts",
    "no truncation",
    "elect outside the ISR",
    "an ISR of one acknowledges",
    "coordinator before the high watermark",
    "transaction coordinator before it is loaded",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_SIMULATION)
def test_a_broken_rule_is_found_by_simulation(name: str) -> None:
    assert find(name, FEW_SEEDS) is not None


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, str]]:
    """The verdicts on all directed tests, from one process."""
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants.directed"],
        cwd=root,
        env=environment | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.process
@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.tests], ids=lambda mutant: mutant.name)
def test_a_broken_rule_is_found_by_its_directed_tests(mutant: Mutant, verdicts: dict[str, dict[str, str]]) -> None:
    assert verdicts[mutant.name] == dict.fromkeys(mutant.tests, FOUND)


def test_every_mutant_is_found_by_one_of_these_tests() -> None:
    assert {each.name for each in MUTANTS if not each.tests} <= set(BY_SIMULATION)


@pytest.mark.slow
def test_a_mutant_whose_code_nothing_calls_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = SimpleNamespace(rule=lambda: None)
    unused = Mutant("unused", "", ((owner, "rule", lambda: None),), ("clock",))
    monkeypatch.setattr("tests.mutants.mutants.MUTANTS", [unused])

    with pytest.raises(UnusedMutantError, match="nothing calls rule"):
        find("unused", range(1))


def test_a_mutant_of_code_that_is_gone_is_an_error() -> None:
    gone = Mutant("gone", "", ((SimpleNamespace(), "rule", lambda: None),))

    with pytest.raises(AttributeError), gone.applied():
        pass
