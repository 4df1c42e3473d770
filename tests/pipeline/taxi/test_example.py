"""The example, as somebody runs it: its stream is killed, and the totals are the generator's all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import run
from odradek.pipeline.taxi.example import totals_of
from odradek.pipeline.taxi.revenue import parse, revenue
from odradek.pipeline.taxi.trips import Trips
from tests.peers.java import FOR_SECONDS
from tests.pipeline.frames import frame, record

pytestmark = pytest.mark.spark


def test_the_batch_has_the_generator_s_totals(spark: SparkSession) -> None:
    trips = Trips(300, seed=5)
    records = [record(number, event.key, event.value) for number, event in enumerate(trips.events())]
    assert totals_of(revenue(parse(frame(spark, records)))) == trips.totals


@pytest.mark.timeout(600)
def test_the_stream_is_killed_and_the_totals_are_the_generator_s(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "taxi", "--output", str(tmp_path), "--trips", "2000", "--kill-after", "1", "--master", "local[2]"]
    line += ["--conf", "spark.sql.shuffle.partitions=2", "--conf", f"spark.driver.extraJavaOptions={FOR_SECONDS}"]
    status = run([*line, "--json"])
    printed = capfd.readouterr()
    assert status == 0, printed.err
    assert "  killed" in printed.err
    told = json.loads(printed.out)
    assert told["agree"]
    assert told["windows"] == len(Trips(2000, 1).totals)
