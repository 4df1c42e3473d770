"""`readStream` of `format("broker")`: the offsets of a batch; nothing is lost or repeated after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

pytest.importorskip("pyspark")

from odradek.pipeline.spark.error_cause import cause_of
from tests.pipeline.tables import Sent, send, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

MakeTopic = Callable[..., str]


def numbered(first: int, last: int, partitions: int) -> list[Sent]:
    return [(number % partitions, 1_700_000_000_000, None, b"%d" % number, []) for number in range(first, last)]


@pytest.fixture
def drain(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Callable[..., list[int]]:
    """Run a query with `availableNow`; return the sizes of its batches. All runs share a checkpoint."""

    def run(topic: str, kind: str = "broker", **options: Any) -> list[int]:
        named = {"subscribe": topic, "startingOffsets": "earliest"} | options
        writer = (
            stream(spark, kind, bootstrap, **named).writeStream.format("parquet").option("path", str(tmp_path / "out"))
        )
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    return run


@pytest.fixture
def numbers(spark: SparkSession, tmp_path: Path) -> Callable[[], list[int]]:
    """Return the values in the file sink, in order."""

    def read() -> list[int]:
        values = spark.read.parquet(str(tmp_path / "out")).selectExpr("cast(cast(value as string) as int) as number")
        return sorted(row.number for row in values.collect())

    return read


def test_batches_are_limited_and_a_restart_continues(
    bootstrap: str, make_topic: MakeTopic, drain: Callable[..., list[int]], numbers: Callable[[], list[int]]
) -> None:
    topic = make_topic(partitions=2)
    send(bootstrap, topic, numbered(0, 1000, 2))
    assert drain(topic, maxOffsetsPerTrigger=400) == [400, 400, 200]
    assert drain(topic, maxOffsetsPerTrigger=400) == []
    send(bootstrap, topic, numbered(1000, 1100, 2))
    assert drain(topic) == [100]
    assert numbers() == list(range(1100))


@pytest.mark.parametrize("kind", ["odradek"])
def test_a_query_continues_with_the_other_format(
    bootstrap: str, make_topic: MakeTopic, drain: Callable[..., list[int]], numbers: Callable[[], list[int]]
) -> None:
    topic = make_topic(partitions=2)
    for round_, kind in enumerate(("kafka", "broker", "kafka", "broker")):
        send(bootstrap, topic, numbered(100 * round_, 100 * round_ + 100, 2))
        assert drain(topic, kind) == [100]
    assert numbers() == list(range(400))


def test_a_new_partition_is_read_from_its_start(
    bootstrap: str, make_topic: MakeTopic, drain: Callable[..., list[int]], numbers: Callable[[], list[int]]
) -> None:
    topic = make_topic(partitions=1)
    send(bootstrap, topic, numbered(0, 100, 1))
    assert drain(topic) == [100]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    send(bootstrap, topic, numbered(100, 400, 3))
    assert sum(drain(topic, startingOffsets="latest", maxOffsetsPerTrigger=100)) == 300
    assert numbers() == list(range(400))


@pytest.mark.parametrize("kind", ["odradek"])
def test_deleted_offsets_fail_a_query_if_fail_on_data_loss_is_set(
    bootstrap: str, make_topic: MakeTopic, drain: Callable[..., list[int]], numbers: Callable[[], list[int]]
) -> None:
    topic = make_topic()
    send(bootstrap, topic, numbered(0, 10, 1))
    assert drain(topic) == [10]
    send(bootstrap, topic, numbered(10, 100, 1))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 50)])[TopicPartition(topic, 0)].result(30)
    with pytest.raises(Exception, match="should have read records that are lost"):
        drain(topic)
    assert drain(topic, failOnDataLoss="false") == [50]
    assert numbers() == [*range(10), *range(50, 100)]


def test_a_topic_that_was_deleted_and_created_again_is_read_from_its_start(
    bootstrap: str, topic_name: str, drain: Callable[..., list[int]], numbers: Callable[[], list[int]]
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic_name, 2, 1)])[topic_name].result(30)
    send(bootstrap, topic_name, numbered(0, 10, 2))
    assert drain(topic_name) == [10]
    admin.delete_topics([topic_name])[topic_name].result(30)
    admin.create_topics([NewTopic(topic_name, 1, 1)])[topic_name].result(30)
    send(bootstrap, topic_name, numbered(10, 40, 1))
    with pytest.raises(Exception, match=f"Topic {topic_name} was deleted and created again"):
        drain(topic_name)
    assert drain(topic_name, failOnDataLoss="false") == [30]
    assert numbers() == list(range(40))


@pytest.mark.parametrize("kind", ["odradek"])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("maxOffsetsPerTrigger", "x", "maxoffsetspertrigger is 'x'"), ("endingOffsets", "latest", "a stream has no end")],
)
def test_an_error_in_an_option_reaches_the_user(
    drain: Callable[..., list[int]], option: str, value: str, message: str
) -> None:
    with pytest.raises(Exception, match=message) as raised:
        drain("t", **{option: value})
    assert message in cause_of(raised.value)


@pytest.mark.parametrize("kind", ["odradek"])
def test_a_trigger_waits_for_min_offsets(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 50, "maxTriggerDelay": "10m"}
    writer = stream(spark, "broker", bootstrap, **options).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(processingTime="100 milliseconds").start()
    try:
        send(bootstrap, topic, numbered(0, 30, 1))
        query.processAllAvailable()
        assert [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]] == []
        send(bootstrap, topic, numbered(30, 60, 1))
        while not any(one["numInputRows"] for one in query.recentProgress):
            query.processAllAvailable()
        source = query.lastProgress["sources"][0]
        end, latest = (json.loads(source[name]) for name in ("endOffset", "latestOffset"))
        assert latest == {topic: {"0": 60}}
        assert {name: offsets for name, offsets in end.items() if offsets} == latest
    finally:
        query.stop()
