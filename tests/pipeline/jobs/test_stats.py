"""`stats`: sums of literal records, and of golden log directories compared with decoding every record."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.broker.storage import open_log_dir
from odradek.pipeline.jobs import FAILED, run
from odradek.pipeline.jobs.log_directories.stored_batches import SCHEMA, batches_of, stored_batches
from odradek.pipeline.jobs.results.stats_plots import topic_figure, write_report
from odradek.pipeline.jobs.stats import (
    key_row,
    key_rows,
    measured_records,
    records_by_topic,
    window_row,
    window_rows,
)
from tests.pipeline.frames import frame, record
from tests.storage.test_golden import HERE

GOLDEN = HERE / "golden_dirs"
HOUR = 3_600_000
MEASURED = {
    "topic": "t",
    "start": 0,
    "records": 1,
    "bytes": 1,
    "late": 0,
    "percentiles": [0, 0],
    "lateness_max_ms": 0,
    "raw_bytes": None,
    "sampled_bytes": None,
    "codecs": ["none", "lz4"],
}


def test_a_row_contains_rates_shares_and_the_compression_ratio() -> None:
    found = {
        "topic": "t",
        "start": 0,
        "records": 7200,
        "bytes": 3600,
        "late": 720,
        "percentiles": [0.0, 12.4],
        "lateness_max_ms": 99,
        "raw_bytes": 300,
        "sampled_bytes": 100,
        "codecs": ["lz4"],
    }
    row = window_row(found, HOUR)
    assert (row["window"], row["records_per_second"], row["bytes_per_second"]) == ("1970-01-01T00:00:00.000Z", 2, 1)
    assert (row["late_share"], row["lateness_p95_ms"], row["compression_ratio"]) == (0.1, 12, 3)
    assert window_row(found | {"raw_bytes": None, "sampled_bytes": None}, HOUR)["compression_ratio"] is None


def test_a_row_of_keys_contains_shares_of_all_records() -> None:
    top = [{"rank": 1, "count": 5, "key": b"a"}, {"rank": 2, "count": 2, "key": b"\xff"}]
    row = key_row({"topic": "t", "records": 10, "keys": 2, "keyless": 3, "top": top})
    assert (row["top_key"], row["top_1_share"], row["top_10_share"], row["keyless_share"]) == ("a", 0.5, 0.7, 0.3)
    assert not row["is_estimate"]
    assert key_row({"topic": "t", "records": 3, "keys": 0, "keyless": 3, "top": None})["top_key"] is None


@pytest.mark.slow
def test_keys_are_an_estimate_only_if_records_were_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals = records_by_topic(
        [{"topic": "t", "records": 4}, {"topic": "t", "records": 3}, {"topic": "u", "records": 1}]
    )
    assert totals == {"t": 7, "u": 1}
    found = {"topic": "t", "records": 6, "keys": 2, "keyless": 0, "top": None}
    rows = [key_row(found | {"records": records}, totals["t"]) for records in (6, 7)]
    assert [row["is_estimate"] for row in rows] == [True, False]
    titles: list[str] = []
    monkeypatch.setattr("matplotlib.axes.Axes.set_title", lambda _, title: titles.append(title))
    window = window_row(MEASURED, HOUR)
    for row in rows:
        written = list(write_report(tmp_path, [window], [row]))
        assert written[1].read_text().splitlines()[0].startswith("topic,keys,is_estimate")
    assert [title for title in titles if "estimate" in title] == [titles[5]]


@pytest.mark.slow
def test_the_report_is_two_tables_and_an_image_of_each_topic(tmp_path: Path) -> None:
    windows = [window_row(MEASURED | {"start": start}, HOUR) for start in (-HOUR, 0, HOUR)]
    keys = [key_row({"topic": "t", "records": 1, "keys": 1, "keyless": 0, "top": [{"count": 1, "key": b"a"}]})]
    written = list(write_report(tmp_path, windows, keys))
    assert [path.name for path in written] == ["windows.csv", "keys.csv", "t.png"]
    assert written[2].read_bytes().startswith(b"\x89PNG")
    assert written[0].read_text().splitlines()[2].endswith("none lz4")


@pytest.mark.spark
def test_windows_and_keys_of_records_are_counted(spark: SparkSession) -> None:
    records = frame(
        spark,
        [
            record(0, b"a", b"xx", seconds=0),
            record(1, b"a", b"xx", seconds=100),
            record(2, b"b", None, seconds=90),
            record(3, None, b"x", seconds=3700),
            record(0, b"a", b"x", seconds=-3600, partition=1),
        ],
    )
    rows = window_rows(measured_records(records), HOUR)
    assert [(row["window"][11:16], row["records"], row["bytes"]) for row in rows] == [
        ("09:00", 1, 2),
        ("10:00", 3, 7),
        ("11:00", 1, 1),
    ]
    assert [row["lateness_max_ms"] for row in rows] == [0, 10_000, 0]
    assert rows[1]["late_share"] == pytest.approx(1 / 3)
    (keys,) = key_rows(records.select("topic", "key"))
    assert (keys["keys"], keys["top_key"], keys["top_1_share"], keys["keyless_share"]) == (2, "a", 0.6, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 60])
@pytest.mark.parametrize("step", [timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=30)])
def test_labels_of_plots_do_not_overlap(count: int, step: timedelta) -> None:
    begin = datetime(2026, 11, 28, 23, 59, tzinfo=UTC)
    lateness = {"lateness_p50_ms": 1, "lateness_p95_ms": 2, "lateness_max_ms": 3}
    rest = {"bytes": 10, "records": 1, "records_per_second": 1.0, "compression_ratio": None, **lateness}
    rows = [{"window": (begin + number * step).isoformat(), **rest} for number in range(count)]
    figure = topic_figure("orders", rows, None)
    figure.canvas.draw()
    for axes in figure.axes[:5]:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        ends = sorted((box for box in boxes if box.overlaps(axes.bbox.padded(40))), key=lambda box: box.x0)
        assert ends
        assert all(left.x1 < right.x0 for left, right in pairwise(ends))


@pytest.mark.spark
def test_headers_give_the_same_sums_as_records(spark: SparkSession) -> None:
    rows = stored_batches(spark, str(GOLDEN)).where("damage is null").collect()
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for row in rows:
        records, size = found.get((row.topic, row.partition), (0, 0))
        found[row.topic, row.partition] = records + row.records, size + row.bytes
    with open_log_dir(GOLDEN) as log_dir:
        for key, stored in log_dir.partitions.items():
            records = list(stored.records())
            assert found.get(key, (0, 0))[0] == len(records), key
    looked_into = [row for row in rows if row.raw_bytes is not None]
    assert all(len(row["keys"]) == row.records for row in looked_into)
    keys = spark.createDataFrame(
        [(row.topic, key) for row in looked_into for key in row["keys"]], "topic string, key binary"
    )
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row.topic] += row.records
    estimated = {row["topic"]: row["is_estimate"] for row in key_rows(keys, totals)}
    assert estimated["rolled"]
    assert not estimated["transactional"]
    compressed = [row for row in looked_into if row.topic == "codec-zstd"]
    assert sum(row.raw_bytes for row in compressed) > 2 * sum(row.sampled_bytes for row in compressed)


@pytest.mark.spark
def test_a_batch_without_timestamps_does_not_make_others_late(spark: SparkSession) -> None:
    row = ("t", 0, 0, 1, 10, "none", -1, -1, None, None, None, None)
    rows = window_rows(spark.createDataFrame([row], SCHEMA), HOUR)
    assert [(each["window"], each["lateness_max_ms"]) for each in rows] == [("-", 0)]


@pytest.mark.spark
def test_a_timestamp_that_is_null_counts_as_none(spark: SparkSession) -> None:
    late = ("t", 0, 0, 1, 10, "none", HOUR, HOUR, None, None, None, None)
    row = ("t", 0, 1, 1, 10, "none", None, None, None, None, None, None)
    rows = window_rows(spark.createDataFrame([late, row], SCHEMA), HOUR)
    assert [(each["window"], each["lateness_max_ms"]) for each in rows] == [("-", 0), ("1970-01-01T01:00:00.000Z", 0)]


@pytest.mark.spark
@pytest.mark.parametrize(("spoiled_byte", "reason"), [(100, "the checksum is wrong"), (16, "magic 3 is unknown")])
def test_damage_is_reported_and_fails_the_job(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoiled_byte: int, reason: str
) -> None:
    shutil.copytree(GOLDEN / "rolled-0", tmp_path / "rolled-0")
    segment = tmp_path / "rolled-0" / "00000000000000000000.log"
    spoiled = bytearray(segment.read_bytes())
    spoiled[spoiled_byte] ^= 1
    segment.write_bytes(spoiled)
    assert run(["stats", "--log-dir", str(tmp_path)]) == FAILED
    assert f"error: {segment} at position 0: {reason}" in capsys.readouterr().err


@pytest.mark.spark
def test_a_missing_topic_is_reported(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", "--log-dir", str(GOLDEN), "--topic", "rolled,none"]) == FAILED
    assert f"error: {GOLDEN} does not contain none" in capsys.readouterr().err


def test_records_of_a_topic_with_append_times_have_the_time_of_the_broker() -> None:
    path = GOLDEN / "logappend-0" / "00000000000000000000.log"
    with open_log_dir(GOLDEN) as log_dir:
        expected = {record.timestamp for record in log_dir.partitions["logappend", 0].records()}
    rows = list(batches_of([("logappend", 0, str(path), path.stat().st_size, True)]))
    assert {time for row in rows for time in row[6:8]} == expected
