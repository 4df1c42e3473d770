"""`format("broker")` and Spark's own connector read what the other has written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.pipeline.tables import assert_same, stream, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

MakeTopic = Callable[..., str]


def rows(spark: SparkSession, count: int = 3000) -> DataFrame:
    """Return rows with keys of 0 to 12 bytes, some null; null and empty values; up to two headers."""
    key = "cast(substr(concat('key-', id, '-long'), 1, cast(id % 13 as int)) as binary)"
    value = "cast(repeat(cast(id as string), cast(id % 9 as int)) as binary)"
    return spark.range(count, numPartitions=3).selectExpr(
        f"case when id % 7 = 0 then null else {key} end as key",
        f"case when id % 11 = 0 then null else {value} end as value",
        """case id % 3 when 0 then null when 1 then array(struct('a' as key, cast(null as binary) as value))
           else array(struct('b' as key, cast(cast(id as string) as binary) as value),
                      struct('' as key, cast('' as binary) as value))
           end as headers""",
    )


def write(frame: DataFrame, kind: str, bootstrap: str, topic: str, **options: str) -> None:
    writer = frame.write.format(kind).mode("append").option("kafka.bootstrap.servers", bootstrap)
    writer.option("topic", topic).options(**{name.replace("_", "."): text for name, text in options.items()}).save()


def test_both_formats_read_the_rows_back(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        write(rows(spark, 500), "broker", bootstrap, topic, kafka_compression_type=codec)
    options = {"subscribe": topic, "includeHeaders": "true"}
    ours, theirs = (table(spark, kind, bootstrap, **options) for kind in ("broker", "kafka"))
    assert assert_same(ours, theirs) == 500 * len(codecs)
    sent = rows(spark, 500).crossJoin(spark.range(len(codecs))).drop("id")
    assert_same(ours.select("key", "value", "headers"), nullable(ours, sent))


def test_both_writers_choose_the_same_partition_for_a_key(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic
) -> None:
    topics = {kind: make_topic(partitions=5) for kind in ("broker", "kafka")}
    keyed = rows(spark).where("key is not null")
    for kind, topic in topics.items():
        write(keyed, kind, bootstrap, topic)
    ours, theirs = (
        table(spark, "broker", bootstrap, subscribe=topic, includeHeaders="true").select(
            "key", "value", "partition", "headers"
        )
        for topic in topics.values()
    )
    assert assert_same(ours, theirs) > 2000


def test_topics_and_partitions_may_be_columns(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    first, second = make_topic(partitions=4), make_topic(partitions=2)
    frame = spark.range(1000).selectExpr(
        f"case when id % 2 = 0 then '{first}' else '{second}' end as topic",
        "case when id % 5 = 0 then 1 else null end as partition",
        "cast(id as string) as value",
        "cast(id as string) as key",
    )
    frame.write.format("broker").mode("append").option("kafka.bootstrap.servers", bootstrap).save()
    written = table(spark, "broker", bootstrap, subscribe=f"{first},{second}")
    found = written.selectExpr("topic", "cast(cast(value as string) as long) as id", "partition")
    assert found.where(f"(topic = '{first}') != (id % 2 = 0)").count() == 0
    assert found.where("id % 5 = 0 and partition != 1").count() == 0
    assert found.count() == 1000
    assert found.where(f"topic = '{first}'").select("partition").distinct().count() == 4


def test_records_without_a_key_reach_all_partitions(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    frame = spark.range(20000, numPartitions=1).selectExpr("repeat('x', 100) as value")
    write(frame, "broker", bootstrap, topic, kafka_batch_size="16384")
    counts = table(spark, "broker", bootstrap, subscribe=topic).groupBy("partition").count().collect()
    assert sum(row["count"] for row in counts) == 20000
    assert all(row["count"] > 5000 for row in counts)
    assert len(counts) == 3


def test_batches_are_split_to_fit_the_topic(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=10000)
    write(spark.range(1000).selectExpr("repeat('x', 300) as value"), "broker", bootstrap, topic)
    assert table(spark, "broker", bootstrap, subscribe=topic).count() == 1000
    too_large = spark.range(1).selectExpr("repeat('x', 20000) as value")
    with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
        write(too_large, "broker", bootstrap, topic)


@pytest.mark.parametrize("kind", ["odradek"])
def test_a_missing_partition_is_rejected(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    with pytest.raises(Exception, match="column partition contains 9, but"):
        write(spark.sql("select 'x' as value, 9 as partition"), "broker", bootstrap, make_topic())


def test_a_stream_is_written(spark: SparkSession, bootstrap: str, make_topic: MakeTopic, checkpoint: str) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    write(rows(spark), "kafka", bootstrap, source)
    options = {"subscribe": source, "startingOffsets": "earliest", "includeHeaders": "true"}
    read = stream(spark, "broker", bootstrap, **options).select("key", "value", "headers")
    writer = read.writeStream.format("broker").option("kafka.bootstrap.servers", bootstrap).option("topic", sink)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    ours, theirs = (
        table(spark, kind, bootstrap, subscribe=topic, includeHeaders="true").select("key", "value", "headers")
        for kind, topic in (("broker", sink), ("kafka", source))
    )
    assert assert_same(ours, theirs) == 3000


def nullable(like: DataFrame, frame: DataFrame) -> DataFrame:
    """Return the rows of `frame` with the schema of `like`, all columns nullable."""
    return frame.sparkSession.createDataFrame(frame.rdd, like.select("key", "value", "headers").schema)
