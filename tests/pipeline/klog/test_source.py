"""Log directories of Apache Kafka, read without a broker."""

from __future__ import annotations

from io import UnsupportedOperation
from pathlib import Path

import pytest

from odradek.client.record import TopicPartition
from odradek.pipeline.klog.plan import OffsetRangeError
from odradek.pipeline.klog.segments import LogDirectory, NoLogDirError
from odradek.pipeline.klog.source import KlogDataSource
from odradek.pipeline.schema import spark_schema
from tests.pipeline.klog.readings import GOLDEN, TOPICS, Reading, as_expected, expected


@pytest.mark.parametrize("topic", TOPICS)
def test_logs_of_kafka_are_read_as_by_its_consumers(topic: str) -> None:
    reading = Reading(GOLDEN, subscribe=topic, maxPartitionBytes="8000")
    found = reading.rows()
    assert [as_expected(row) for row in found] == expected(f"{topic}.records")
    assert {(row["topic"], row["partition"], row["_corrupt_record"]) for row in found} == {(topic, 0, None)}


def test_read_committed_leaves_out_the_same_records_as_kafka() -> None:
    for size in ("1", "100000"):
        reading = Reading(GOLDEN, subscribe="transactional", isolation__level="read_committed", maxPartitionBytes=size)
        assert [as_expected(row) for row in reading.rows()] == expected("transactional.read_committed")


def test_all_topics_are_read_except_internal_ones() -> None:
    assert {piece.topic for piece in Reading(GOLDEN).pieces} == set(TOPICS)
    assert {piece.topic for piece in Reading(GOLDEN, subscribePattern="codec-.*").pieces} == set(TOPICS[:5])
    assert {piece.topic for piece in Reading(GOLDEN, subscribe="__consumer_offsets").pieces} == {"__consumer_offsets"}
    assert {piece.topic for piece in Reading(GOLDEN, assign='{"rolled": [0]}').pieces} == {"rolled"}


@pytest.mark.parametrize("option", [{"subscribe": "nothing"}, {"assign": '{"rolled": [0, 7]}'}])
def test_missing_topics_and_partitions_are_reported(option: dict[str, str]) -> None:
    with pytest.raises(OffsetRangeError, match=r"golden_dirs does not contain (nothing|rolled-7)"):
        Reading(GOLDEN, **option)


def test_offsets_of_a_partition_are_found_without_reading_records() -> None:
    with LogDirectory(str(GOLDEN)) as directory:
        transactional = directory.read(
            TopicPartition("transactional", 0), lambda log: (log.start_offset, log.end_offset, log.last_stable_offset())
        )
        rolled = directory.read(TopicPartition("rolled", 0), lambda log: log.end_offset)
    assert (*transactional, rolled) == (0, 66, 66, 20_000)


@pytest.mark.parametrize("make", [False, True])
def test_a_path_that_is_not_a_log_directory_is_reported(tmp_path: Path, make: bool) -> None:
    path = tmp_path / "elsewhere"
    if make:
        path.mkdir()
        (path / "notes.txt").write_text("hello")
    with pytest.raises(NoLogDirError, match="elsewhere"):
        Reading(path)


def test_writes_and_streams_are_refused_with_a_sentence() -> None:
    source, schema = KlogDataSource({"path": str(GOLDEN)}), spark_schema(["value"])
    reader = source.streamReader(schema)  # Spark loses the text of an error here
    for wording, call in (
        ("only reads", lambda: source.writer(schema, overwrite=False)),
        ("only reads", lambda: source.streamWriter(schema, overwrite=False)),
        ("has no streams", reader.initialOffset),
    ):
        with pytest.raises(UnsupportedOperation, match=rf'^format\("klog"\) {wording}'):
            call()
