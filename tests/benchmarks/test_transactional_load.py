"""The generator of transactions: what it writes to a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.side_by_side import load, transactional_load
from benchmarks.side_by_side.contest import Side
from benchmarks.side_by_side.transactional_load import VERSIONS, Work
from tests.peers import odradek

pytestmark = pytest.mark.process

RECORDS, PRODUCERS, ROUNDS = 3, 2, 5
TOPIC = "work"


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    one = Side("odradek", odradek.prepare(Path(tmp_path_factory.mktemp("broker"))))
    one.start()
    yield one
    one.stop()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_transaction_leaves_its_records_and_a_marker_that_commits_them(side: Side, version: int) -> None:
    topic = f"{TOPIC}-{version}"
    side.create_topic(topic, 1)
    sample = transactional_load.run(side.port, [Work(topic, [0], RECORDS, 100, version)] * PRODUCERS, seconds=0.2)
    stable, end = ends(side, topic)
    assert stable == end
    transactions, rest = divmod(end, RECORDS + 1)
    assert rest == 0
    # Besides the counted ones: one of each producer before them, and one that is under way when the time is over.
    assert sample["requests"] + PRODUCERS <= transactions <= sample["requests"] + 2 * PRODUCERS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_parked_consumer_sees_each_commit(side: Side, version: int) -> None:
    topic = f"visible-{version}"
    side.create_topic(topic, 1)
    sample = transactional_load.visible(side.port, Work(topic, [0], RECORDS, 100, version), rounds=ROUNDS)
    assert sample["p99_us"] >= sample["p50_us"] > 0
    assert ends(side, topic) == ((ROUNDS + 1) * (RECORDS + 1),) * 2


def ends(side: Side, topic: str) -> tuple[int, int]:
    """Return the last stable offset and the end of the log."""
    stable, end = (
        load.ask(side.port, load.list_offsets_frame(topic, -1, read_committed=committed))[1]
        .topics[0]
        .partitions[0]
        .offset
        for committed in (True, False)
    )
    return stable, end
