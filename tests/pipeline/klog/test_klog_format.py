"""`format("klog")` in a Spark session returns the same rows as Spark's own connector from the broker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers import apache, odradek
from tests.peers.server import Server
from tests.pipeline.tables import Sent, assert_same, send, send_with, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

GOLDEN = Path(__file__).parents[2] / "storage" / "golden_dirs"
NOW = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LEVELS = ("read_uncommitted", "read_committed")


def mixed(count: int, partitions: int) -> Iterator[Sent]:
    """Yield records without keys, tombstones, headers without values and repeated headers, long and empty values."""
    for i in range(count):
        key = None if i % 5 == 0 else b"key-%d" % (i % 70)
        value = None if i % 7 == 0 else b"value %d " % i * (i % 30)
        headers: list[tuple[str, bytes | None]] = [("a", b"%d" % i), ("a", None), ("ä", b"")][: i % 4]
        yield i % partitions, NOW + i * 10, key, value, headers


def send_in_transactions(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        send_with(producer, topic, mixed(50, 3))
        if number % 2:
            producer.commit_transaction(30)
        else:
            assert producer.flush(30) == 0
            producer.abort_transaction(30)


@pytest.mark.parametrize(
    ("prepare", "in_transactions", "undone"),
    [(odradek.prepare, 0, 0), (apache.prepare, 300, 150)],  # only Apache Kafka has transactions
    ids=["odradek", "apache"],
)
def test_files_contain_what_the_connector_reads(
    spark: SparkSession, prepare: Callable[[Path], Server], in_transactions: int, undone: int, tmp_path: Path
) -> None:
    server = prepare(tmp_path / "server").start()
    try:
        topics = [*(f"mixed-{codec}" for codec in CODECS), "mixed-transactions"]
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        for created in admin.create_topics([NewTopic(topic, 3, 1) for topic in topics]).values():
            created.result(30)
        for codec in CODECS:
            send(server.bootstrap, f"mixed-{codec}", mixed(3000, 3), compression_type=codec)
        if in_transactions:
            send_in_transactions(server.bootstrap, "mixed-transactions")
        theirs = {
            level: table(
                spark,
                "kafka",
                server.bootstrap,
                subscribePattern="mixed-.*",
                includeHeaders="true",
                kafka_isolation_level=level,
            ).localCheckpoint()
            for level in LEVELS
        }
    finally:
        server.stop()
    for level, rows in zip(LEVELS, (15_000 + in_transactions, 15_000 + in_transactions - undone), strict=True):
        options = {"subscribePattern": "mixed-.*", "includeHeaders": "true", "isolation.level": level}
        ours = spark.read.format("klog").options(**options).load(str(server.log_dir))
        assert assert_same(ours, theirs[level]) == rows


def test_filters_of_a_query_are_pushed_down_and_applied(spark: SparkSession) -> None:
    every = spark.read.format("klog").load(str(GOLDEN))
    chosen = every.where("topic = 'rolled' and partition = 0 and offset >= 9000 and offset < 9010")
    assert sorted(row.offset for row in chosen.select("offset").collect()) == list(range(9000, 9010))
    middle = every.where("topic = 'rolled' and offset = 10000").first()
    assert middle is not None
    later = every.where("topic = 'rolled'").where(every.timestamp > middle.timestamp)
    in_spark = [row for row in every.where("topic = 'rolled'").collect() if row.timestamp > middle.timestamp]
    assert later.count() == len(in_spark) > 0


def test_a_range_without_records_is_an_empty_table(spark: SparkSession) -> None:
    every = spark.read.format("klog").load(str(GOLDEN))
    assert every.where("topic = 'rolled' and partition = 9").count() == 0
    assert (
        spark.read.format("klog")
        .option("startingOffsets", '{"rolled": {"0": 5}}')
        .options(subscribe="rolled", endingOffsets='{"rolled": {"0": 5}}')
        .load(str(GOLDEN))
        .collect()
        == []
    )


def test_columns_are_selected_by_schema(spark: SparkSession) -> None:
    found = spark.read.format("klog").schema("value binary, offset bigint").option("subscribe", "codec-lz4")
    assert found.load(str(GOLDEN)).columns == ["value", "offset"]
    assert found.load(str(GOLDEN)).count() == 200
    with pytest.raises(Exception, match="column offset must be bigint, not string"):
        spark.read.format("klog").schema("offset string").load(str(GOLDEN)).count()


def test_damage_is_reported_with_file_and_position(spark: SparkSession, tmp_path: Path) -> None:
    golden = Path(shutil.copytree(GOLDEN, tmp_path / "golden"))
    segment = min((golden / "codec-zstd-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    reader = spark.read.format("klog").option("subscribe", "codec-zstd")
    with pytest.raises(Exception, match=rf"{segment} at position 0 .*checksum"):
        reader.load(str(golden)).collect()
    permissive = reader.option("mode", "PERMISSIVE").load(str(golden))
    assert permissive.columns[-1] == "_corrupt_record"
    assert [row.topic for row in permissive.where("_corrupt_record is not null").collect()] == ["codec-zstd"]
    kept = reader.option("mode", "DROPMALFORMED").load(str(golden)).count()
    assert 0 < kept == permissive.where("_corrupt_record is null").count() < 200


def test_a_copied_partition_with_a_torn_end_is_read_up_to_its_last_whole_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    segment = max(Path(shutil.copytree(GOLDEN / "rolled-0", tmp_path / "rolled-0")).glob("*.log"))
    os.truncate(segment, segment.stat().st_size - 13)
    reader = spark.read.format("klog")
    permissive = reader.option("mode", "PERMISSIVE").load(str(tmp_path)).localCheckpoint()
    kept = permissive.where("_corrupt_record is null")
    assert 19_000 < kept.count() == kept.agg({"offset": "max"}).first()[0] + 1 < 20_000
    (damaged,) = permissive.where("_corrupt_record is not null").collect()
    assert f"{segment} at position " in damaged["_corrupt_record"]
    assert reader.option("mode", "DROPMALFORMED").load(str(tmp_path)).count() == kept.count()
    with pytest.raises(Exception, match=rf"{segment} at position .* inside a batch"):
        reader.option("mode", "FAILFAST").load(str(tmp_path)).collect()


def test_a_foreign_directory_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=f"{tmp_path} is no log directory"):
        spark.read.format("klog").load(str(tmp_path)).collect()
