"""The taxi example: the totals equal the generator's although its stream is killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import run
from odradek.pipeline.taxi.example import totals_of
from odradek.pipeline.taxi.revenue import parse, revenue
from odradek.pipeline.taxi.trips import Trips
from tests.pipeline.frames import frame, record
from tests.pipeline.quick_start import QUICK_START

pytestmark = pytest.mark.spark


def test_a_batch_query_has_the_totals_of_the_generator(spark: SparkSession) -> None:
    trips = Trips(300, seed=5)
    records = [record(number, event.key, event.value) for number, event in enumerate(trips.events())]
    assert totals_of(revenue(parse(frame(spark, records)))) == trips.totals


@pytest.mark.timeout(600)
def test_a_killed_stream_has_the_totals_of_the_generator(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "taxi", "--output", str(tmp_path), "--trips", "2000", "--kill-after", "1", "--master", "local[2]"]
    line += ["--conf", "spark.sql.shuffle.partitions=2", *QUICK_START]
    status = run([*line, "--json"])
    printed = capfd.readouterr()
    assert status == 0, printed.err
    assert "  killed" in printed.err
    summary = json.loads(printed.out)
    assert summary["agree"]
    assert summary["windows"] == len(Trips(2000, 1).totals)
