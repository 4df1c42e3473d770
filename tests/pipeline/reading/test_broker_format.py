"""`format("broker")` and Spark's own connector return the same rows, from both servers."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.peers import odradek
from tests.peers.server import Server

pytest.importorskip("pyspark")

from tests.pipeline.tables import Sent, assert_same, send, send_with, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
GOLDEN = Path(__file__).parents[2] / "storage"
COMMITTED = ("transactional", "read_committed")
T0 = 1_700_000_000_000

MakeTopic = Callable[..., str]


def mixed(count: int, seed: int, partitions: int = 3) -> Iterator[Sent]:
    """Yield records with and without keys and headers, tombstones, empty values, and unordered timestamps."""
    chance = Random(seed)
    for number in range(count):
        key = None if chance.random() < 0.2 else b"key-%d" % chance.randrange(100)
        value = None if chance.random() < 0.1 else chance.randbytes(chance.choice([0, 1, 20, 300]))
        headers = [
            (chance.choice(["a", "bé", ""]), chance.choice([None, b"", b"v" * 9]))
            for _ in range(chance.choice([0, 0, 1, 3]))
        ]
        yield chance.randrange(partitions), T0 + number + chance.randrange(-50, 50), key, value, headers


@pytest.fixture
def mixed_topic(make_topic: MakeTopic, bootstrap: str) -> str:
    topic = make_topic(partitions=3)
    for seed, codec in enumerate(CODECS):
        send(bootstrap, topic, mixed(400, seed), compression_type=codec)
    return topic


def test_codecs_headers_nulls_and_partitions_are_read(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    options = {"subscribe": mixed_topic, "includeHeaders": "true"}
    ours, theirs = (table(spark, kind, bootstrap, **options) for kind in ("broker", "kafka"))
    assert assert_same(ours, theirs) == 2000
    assert ours.where("value is null").count() > 50
    assert ours.where("headers is null").count() > 500


def test_ranges_of_offsets_are_read_by_more_tasks_than_partitions(
    spark: SparkSession, bootstrap: str, mixed_topic: str
) -> None:
    options = {
        "assign": json.dumps({mixed_topic: [0, 2]}),
        "startingOffsets": json.dumps({mixed_topic: {"0": 50, "2": -2}}),
        "endingOffsets": json.dumps({mixed_topic: {"0": -1, "2": 333}}),
        "minPartitions": "5",
    }
    ours, theirs = (table(spark, kind, bootstrap, **options) for kind in ("broker", "kafka"))
    assert assert_same(ours, theirs) > 500
    assert ours.rdd.getNumPartitions() == 5


def test_a_missing_assigned_partition_is_ignored(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    options = {"assign": json.dumps({mixed_topic: [1, 7]})}
    ours, theirs = (table(spark, kind, bootstrap, **options) for kind in ("broker", "kafka"))
    assert assert_same(ours, theirs) > 500


def test_ranges_of_time_are_read(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    options = {"subscribePattern": mixed_topic[:-1] + ".", "startingTimestamp": T0 + 100, "endingTimestamp": T0 + 300}
    ours, theirs = (table(spark, kind, bootstrap, **options) for kind in ("broker", "kafka"))
    assert_same(ours, theirs)
    late = {"subscribe": mixed_topic, "startingTimestamp": T0 * 2}
    with pytest.raises(Exception, match="has no record as late as"):
        table(spark, "broker", bootstrap, **late).count()
    assert table(spark, "broker", bootstrap, **late, startingOffsetsByTimestampStrategy="latest").count() == 0
    assert table(spark, "broker", bootstrap, subscribe=mixed_topic, endingTimestamp=T0 * 2).count() == 2000


def test_filters_select_the_same_rows_in_any_time_zone(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        ours, theirs = (
            table(spark, kind, bootstrap, subscribe=mixed_topic).where(
                "timestamp > timestamp'2023-11-14 17:13:20.1235' and partition in (0, 2) and offset < 500"
            )
            for kind in ("broker", "kafka")
        )
        assert assert_same(ours, theirs) > 100
        assert ours.rdd.getNumPartitions() == 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_batch_that_ends_before_it_starts_is_an_error(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    options = {"subscribe": mixed_topic, "startingTimestamp": T0 + 300, "endingTimestamp": T0 + 100}
    for kind, message in (("broker", "is below the start offset"), ("kafka", "greater than the resolved end offset")):
        with pytest.raises(Exception, match=message):
            table(spark, kind, bootstrap, **options, failOnDataLoss="false").count()


def test_batches_compressed_by_the_broker_are_read(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topics = [
        make_topic(compression_type=codec, message_timestamp_type="LogAppendTime")
        for codec in ("gzip", "snappy", "lz4", "zstd")
    ]
    for topic in topics:
        send(bootstrap, topic, mixed(300, seed=7, partitions=1))
    ours, theirs = (table(spark, kind, bootstrap, subscribe=",".join(topics)) for kind in ("broker", "kafka"))
    assert assert_same(ours, theirs) == 1200


def test_single_columns_are_selected_by_schema(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    reader = spark.read.format("broker").option("kafka.bootstrap.servers", bootstrap).option("subscribe", mixed_topic)
    ours = reader.schema("value binary").load()
    assert assert_same(ours, table(spark, "kafka", bootstrap, subscribe=mixed_topic).select("value")) == 2000
    with pytest.raises(Exception, match="the columns of this source are"):
        reader.schema("value string").load().count()


def test_a_missing_topic_is_an_error(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    assert table(spark, "broker", bootstrap, subscribe=make_topic(partitions=2)).count() == 0
    with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PARTITION"):
        table(spark, "broker", bootstrap, subscribe="there-is-none").count()


def test_deleted_offsets_are_data_loss(spark: SparkSession, bootstrap: str, mixed_topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(mixed_topic, index, 100) for index in range(3)]).values():
        future.result(30)
    options = {"subscribe": mixed_topic, "startingOffsets": json.dumps({mixed_topic: {"0": 0, "1": 0, "2": 0}})}
    with pytest.raises(Exception, match="should have read records that are lost"):
        table(spark, "broker", bootstrap, **options).count()
    ours, theirs = (table(spark, kind, bootstrap, **options, failOnDataLoss="false") for kind in ("broker", "kafka"))
    assert assert_same(ours, theirs) == 1700


@pytest.mark.parametrize("kind", ["apache"])
def test_isolation_levels_select_records_of_transactions(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "compression.type": "lz4"})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        send_with(producer, topic, mixed(100, number, partitions=2))
        producer.flush(30)  # otherwise the aborted records may not have been sent
        producer.abort_transaction() if number % 3 == 1 else producer.commit_transaction()
        send(bootstrap, topic, mixed(10, number, partitions=2))
    producer.begin_transaction()
    send_with(producer, topic, mixed(100, 6, partitions=2))
    producer.flush(30)  # this transaction stays open and limits the last stable offset
    send(bootstrap, topic, mixed(10, 7, partitions=2))
    try:
        for name in ("isolation.level", "kafka.isolation.level"):
            ours = table(spark, "broker", bootstrap, subscribe=topic, **{name: "read_committed"})
            theirs = table(spark, "kafka", bootstrap, subscribe=topic, kafka_isolation_level="read_committed")
            assert assert_same(ours, theirs) == 460
        ours, theirs = (table(spark, kind, bootstrap, subscribe=topic) for kind in ("broker", "kafka"))
        assert assert_same(ours, theirs) == 770
    finally:
        producer.abort_transaction()


@pytest.fixture(scope="module")
def golden_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Our broker on a log directory of Apache Kafka."""
    directory = tmp_path_factory.mktemp("golden")
    shutil.copytree(GOLDEN / "golden_dirs", directory / "log")
    server = odradek.prepare(directory).start()
    yield server
    server.stop()


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_logs_of_kafka_are_read(spark: SparkSession, golden_server: Server, level: str) -> None:
    topics = ["compacted", "transactional", "rolled", "logappend", "codec-snappy"]
    options = {"subscribe": ",".join(topics), "includeHeaders": "true", "kafka_isolation_level": level}
    ours, theirs = (table(spark, kind, golden_server.bootstrap, **options) for kind in ("broker", "kafka"))
    assert_same(ours, theirs)
    rows = ours.orderBy("offset").select("topic", "offset", "key", "value").collect()
    for topic in topics:
        name = "transactional.read_committed" if (topic, level) == COMMITTED else f"{topic}.records"
        found = [(row.offset, text(row.key), text(row.value)) for row in rows if row.topic == topic]
        assert found == expected(name)


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


@cache
def expected(name: str) -> list[tuple[int, str | None, str | None]]:
    path = GOLDEN / "golden_expected" / f"{name}.jsonl"
    lines = path.read_text() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes()).decode()
    records = [json.loads(line) for line in lines.splitlines()]
    return [(record["offset"], record["key"], record["value"]) for record in records]
