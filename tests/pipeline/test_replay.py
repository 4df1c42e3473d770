"""`replay`: order and pace, before the sink."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.jobs import JobError
from pipeline.jobs.replay import exported, held_back, in_order, with_due_times
from tests.pipeline.frames import frame, record


def batch(due: list[float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": list(range(len(due))), "due": due})


def test_records_are_held_back_and_none_is_lost() -> None:
    through = list(held_back(iter([batch([0.0, 0.0, 0.12, 0.12, 0.24]), batch([0.0])])))
    assert [each.to_pydict()["value"] for each in through] == [[0, 1], [2, 3], [4], [0]]
    assert all(each.schema.names == ["value"] for each in through)


def test_the_time_is_counted_from_the_first_record(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + seconds))

    def batches() -> Iterator[pa.RecordBatch]:
        now[0] += 60  # Spark takes a minute to sort what there is
        yield batch([0.0, 1.0, 2.0])

    assert [(each.num_rows, now[0]) for each in held_back(batches())] == [(1, 160), (1, 161), (1, 162)]


@pytest.mark.spark
def test_partitions_keep_their_order_and_end_together(spark: SparkSession) -> None:
    long = [record(offset, b"a", b"%d" % offset) for offset in range(9, -1, -1)]
    short = [record(offset, b"b", b"%d" % offset, partition=1) for offset in range(4, -1, -1)]
    records = frame(spark, long + short)
    due = with_due_times(records, {("t", 0): 10, ("t", 1): 5}, rate=15).orderBy("partition", "offset").collect()
    assert [round(row.due, 6) for row in due] == [n / 10 for n in range(10)] + [n / 5 for n in range(5)]
    for rate in (None, 1000.0):
        ordered = in_order(records, rate=rate, keep_partitions=True)
        assert ordered.columns == ["key", "value", "headers", "partition", *(["due"] if rate else [])]
        sent = ordered.collect()
        assert [int(row.value) for row in sent if row.key == b"a"] == list(range(10))
        assert [(int(row.value), row.partition) for row in sent if row.key == b"b"] == [(n, 1) for n in range(5)]


@pytest.mark.spark
def test_parquet_of_another_kind_is_refused(spark: SparkSession, tmp_path: object) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/numbers")
    with pytest.raises(JobError, match="numbers is no export: it has no column key, offset, partition, topic, value"):
        exported(spark, f"{tmp_path}/numbers")
