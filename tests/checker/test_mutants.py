"""The checker finds mutants within a few seeds.

Here are those that nearly every seed finds; `python -m tests.checker --mutant NAME` searches for the others, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from odradek.broker.replication import partition
from tests.checker.analysis import find_anomalies
from tests.checker.mutants import mutated
from tests.checker.workload import Workload
from tests.peers import odradek

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.skipif(
        not str(partition.__file__).endswith(".py"), reason="the methods of compiled classes cannot be replaced"
    ),
]
SEEDS = range(1, 11)
FOUND_SOON = ("no marker", "the last stable offset is the high watermark", "a marker before the decision")


@pytest.mark.parametrize("name", FOUND_SOON)
def test_the_checker_finds_a_defect(name: str, tmp_path: Path) -> None:
    assert any(is_found(name, seed, tmp_path / str(seed)) for seed in SEEDS)


def is_found(name: str, seed: int, directory: Path) -> bool:
    """Return whether one run has an anomaly, or a client that cannot go on."""
    server = mutated(odradek.prepare(directory), name).start()
    try:
        history = Workload(server, seed, faults=1, timeout=5).run()
    except (TimeoutError, KafkaException):
        return True
    finally:
        server.kill()
    return find_anomalies(history) != []
