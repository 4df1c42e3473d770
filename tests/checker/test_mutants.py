"""The checker finds each mutant within a few seeds: `python -m tests.checker --mutant NAME` runs more of them.

Each is found by an anomaly in what readers saw, which a slow machine cannot cause. Only a marker that is replayed out
of order is found by a client that cannot go on: the offsets before it never become stable.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.replication import partition
from tests.checker.analysis import find_anomalies
from tests.checker.mutants import MUTANTS, mutated
from tests.checker.nemesis import OneServer
from tests.checker.workload import LATE_REQUESTS, PRODUCERS, Producers, Workload
from tests.peers import odradek

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.skipif(
        not str(partition.__file__).endswith(".py"), reason="the methods of compiled classes cannot be replaced"
    ),
]
SEEDS = range(1, 11)
SECONDS = 4
"""The time after which a client counts as stuck."""


class Shown(NamedTuple):
    """How a mutant shows: the kinds of anomalies, one of which is found, and the producers that meet it soon."""

    kinds: frozenset[str]
    producers: Producers = LATE_REQUESTS
    transactions: int = 25


IN_READS = frozenset(
    {"aborted read", "lost write", "torn transaction", "inconsistent offset", "inconsistent committed offset"}
)
HOW = {
    "no marker": Shown(IN_READS, PRODUCERS[:-1], 10),
    "the epoch is ignored": Shown(IN_READS),
    "no bump by an end": Shown(IN_READS),
    "no bump by a start": Shown(IN_READS),
    "the epoch of markers is ignored": Shown(IN_READS),
    "a marker is replayed out of order": Shown(frozenset({"failed client"})),
    "the last stable offset is the high watermark": Shown(IN_READS),
    "a marker before the decision": Shown(IN_READS, PRODUCERS),
}


def test_every_mutant_is_here() -> None:
    assert HOW.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", HOW)
def test_the_checker_finds_a_defect(name: str, tmp_path: Path) -> None:
    assert any(kinds(name, seed, tmp_path / str(seed)) & HOW[name].kinds for seed in SEEDS)


def kinds(name: str, seed: int, directory: Path) -> set[str]:
    """Return the kinds of anomalies of one run."""
    server = mutated(odradek.prepare(directory), name).start()
    faults = int(HOW[name].producers is PRODUCERS)
    try:
        history = Workload(OneServer(server), seed, faults, SECONDS, HOW[name].producers, HOW[name].transactions).run()
    finally:
        server.kill()
    return {anomaly.kind for anomaly in find_anomalies(history)}
