"""`compact` and `restore` on literal records; `test_compact_equality` compares them with the cleaner."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from odradek.pipeline.jobs.compact import compacted
from odradek.pipeline.jobs.restore import as_table, state
from tests.pipeline.frames import START, frame, record

pytestmark = pytest.mark.spark

RECORDS = [
    record(0, b"a", b"1", seconds=0),
    record(1, b"b", b"1", seconds=1),
    record(2, None, b"keyless", seconds=2),
    record(3, b"a", b"2", seconds=3),
    record(4, b"b", None, seconds=4),
    record(5, b"c", b"1", seconds=5),
    record(0, b"a", b"elsewhere", partition=1),
    record(7, b"a", b"of another", topic="u"),
]


def test_the_latest_record_of_each_key_of_each_partition_is_kept(spark: SparkSession) -> None:
    records = frame(spark, RECORDS)
    left = compacted(records)
    assert left.schema == records.schema
    found = {(row.topic, row.partition, row.offset, bytes(row.key)) for row in left.collect()}
    assert found == {("t", 0, 3, b"a"), ("t", 0, 4, b"b"), ("t", 0, 5, b"c"), ("t", 1, 0, b"a"), ("u", 0, 7, b"a")}


def test_a_state_excludes_tombstones_and_later_records(spark: SparkSession) -> None:
    records = frame(spark, [each for each in RECORDS if each[2:4] == ("t", 0)])
    at = round(START.timestamp() * 1000)

    def keys_at(as_of_ms: int | None) -> dict[str, bytes]:
        return {row.key: bytes(row.value) for row in as_table(state(records, as_of_ms=as_of_ms)).collect()}

    assert keys_at(None) == {"a": b"2", "c": b"1"}
    assert keys_at(at + 2000) == {"a": b"1", "b": b"1"}
    assert keys_at(at + 3000) == {"a": b"2", "b": b"1"}
    assert keys_at(at - 1) == {}


def test_json_values_become_columns(spark: SparkSession) -> None:
    records = frame(spark, [record(0, b"a", b'{"zone": "Z1", "cents": 250}')])
    table = as_table(state(records), value_schema="zone STRING, cents BIGINT")
    assert [(row.key, row.zone, row.cents, row.offset) for row in table.collect()] == [("a", "Z1", 250, 0)]
