"""Tests of the simulation: brokers with a defect each, which it must find within a few seeds.

Here are those that nearly every seed finds, so that a change elsewhere, which changes all runs, breaks no test. The
others need more seeds: `make simulate-mutants`.
"""

from __future__ import annotations

import pytest

from tests.simulation.mutants import find

FEW_SEEDS = range(12)
"""A run takes about 1.5 s of processor time; most mutants are found by the first or second."""


@pytest.mark.parametrize(
    "name",
    [
        "acknowledge before the high watermark",
        "the proposed ISR counts",
        "no truncation",
        "elect outside the ISR",
        "an ISR of one acknowledges",
    ],
)
def test_a_broken_rule_is_found(name: str) -> None:
    assert find(name, FEW_SEEDS) is not None
