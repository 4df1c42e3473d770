"""`replay`: the Parquet that it accepts, and the order and rate of records before the sink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import JobError, replay
from odradek.pipeline.jobs.parquet_records import stored_records
from odradek.pipeline.jobs.replay import delay_until_due, in_order, with_due_times
from tests.pipeline.frames import frame, record


def batch(due: list[float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": list(range(len(due))), "due": due})


def test_records_are_delayed_and_none_is_lost() -> None:
    through = list(delay_until_due(iter([batch([0.0, 0.0, 0.12, 0.12, 0.24]), batch([0.0])])))
    assert [each.to_pydict()["value"] for each in through] == [[0, 1], [2, 3], [4], [0]]
    assert all(each.schema.names == ["value"] for each in through)


def test_time_starts_at_the_first_record(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    # Of the module alone: threads of earlier tests sleep, too.
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(replay, "time", clock)

    def batches() -> Iterator[pa.RecordBatch]:
        now[0] += 60  # Spark takes a minute to sort
        yield batch([0.0, 1.0, 2.0])

    assert [(each.num_rows, now[0]) for each in delay_until_due(batches())] == [(1, 160), (1, 161), (1, 162)]


@pytest.mark.spark
def test_partitions_keep_their_order_and_end_together(spark: SparkSession) -> None:
    long = [record(offset, b"a", b"%d" % offset) for offset in range(9, -1, -1)]
    short = [record(offset, b"b", b"%d" % offset, partition=1) for offset in range(4, -1, -1)]
    records = frame(spark, long + short)
    grouped = records.withColumnRenamed("partition", "group")
    due = with_due_times(grouped, {("t", 0): 10, ("t", 1): 5}, rate=15).orderBy("group", "offset").collect()
    assert [round(row.due, 6) for row in due] == [n / 10 for n in range(10)] + [n / 5 for n in range(5)]
    for rate in (None, 1000.0):
        ordered = in_order(records, rate=rate, keep_partitions=True)
        assert ordered.columns == ["key", "value", "headers", "partition", *(["due"] if rate else [])]
        sent = ordered.collect()
        assert [int(row.value) for row in sent if row.key == b"a"] == list(range(10))
        assert [(int(row.value), row.partition) for row in sent if row.key == b"b"] == [(n, 1) for n in range(5)]


def written(directory: Path, *tables: dict[str, Any]) -> str:
    """Write each table to a Parquet file of a directory, without Spark."""
    directory.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(pa.table(table), directory / f"{number}.parquet")
    return str(directory)


def numbered(start: int, stop: int, **columns: Any) -> dict[str, Any]:
    """Return records of four keys with ascending values."""
    numbers = range(start, stop)
    return {"key": [f"k{n % 4}" for n in numbers], "value": pa.array(map(str, numbers), pa.large_string()), **columns}


@pytest.mark.spark
def test_files_of_other_tools_are_sent_in_the_order_of_rows_of_each_key(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([1] * 100, pa.timestamp("ns"))
    written(tmp_path / "trips" / "date=2026-11-21", numbered(0, 100, time=times), numbered(100, 200))
    written(tmp_path / "trips" / "date=2026-11-22", numbered(200, 300, headers=[[{"key": "h", "value": b"1"}]] * 100))
    records = stored_records(spark, str(tmp_path / "trips"))
    for rate in (None, 1e6):
        sent = in_order(records, rate=rate).collect()
        for key in (b"k0", b"k1", b"k2", b"k3"):
            values = [int(row.value) for row in sent if row.key == key]
            assert values == list(range(int(key[1:]), 300, 4))
        assert {int(row.value) for row in sent if row.headers} == set(range(200, 300))


@pytest.mark.spark
def test_partitions_and_offsets_may_be_any_integers_and_topics_directories(spark: SparkSession, tmp_path: Path) -> None:
    numbers: Any = {"partition": pa.array([1] * 10, pa.int64()), "offset": pa.array(range(9, -1, -1), pa.int32())}
    written(tmp_path / "topic=007", numbered(0, 10, **numbers))
    records = stored_records(spark, str(tmp_path), ("topic", "partition"))
    assert {row.topic for row in records.collect()} == {"007"}
    sent = in_order(records, keep_partitions=True).collect()
    assert [(int(row.value), row.partition) for row in sent] == [(n, 1) for n in range(9, -1, -1)]


@pytest.mark.spark
def test_files_with_values_only_are_records_without_keys(spark: SparkSession, tmp_path: Path) -> None:
    records = stored_records(spark, written(tmp_path / "values", {"value": [b"1", None, b"2"], "other": [1.5] * 3}))
    assert [(row.key, row.value, row.headers) for row in in_order(records).collect()] == [
        (None, value, None) for value in (b"1", None, b"2")
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "contains no Parquet; if its subdirectories do, use '.*/here/\\*'"),
        ([{"key": [b"k"], "number": [1]}], "here has no column value, partition, only key, number"),
        ([{"value": [b"v"], "partition": ["one"]}], "column partition must be tinyint .* not string"),
        ([{"value": [1], "partition": [1]}], "here: column value must be binary or string, not bigint"),
        ([numbered(0, 4, partition=[0] * 4, headers=[["h"]] * 4)], "headers must be array<struct.*, not array<string>"),
    ],
)
def test_parquet_without_records_is_rejected(
    spark: SparkSession, tmp_path: Path, tables: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(JobError, match=message):
        stored_records(spark, written(tmp_path / "here", *tables), ("partition",))


@pytest.mark.spark
def test_an_error_in_one_file_names_the_file_and_the_column(spark: SparkSession, tmp_path: Path) -> None:
    directory = written(tmp_path / "here", {"value": [b"v"]}, {"value": [1.5]})
    with pytest.raises(Py4JJavaError, match=r"here/1\.parquet[^\n]*\[value\]"):
        in_order(stored_records(spark, directory)).collect()


@pytest.mark.spark
def test_records_without_an_offset_among_others_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    directory = written(tmp_path / "here", numbered(0, 4, offset=range(4)), numbered(4, 7))
    with pytest.raises(JobError, match="3 records have no offset"):
        in_order(stored_records(spark, directory))
