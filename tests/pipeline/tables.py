"""Helpers for tests of the formats: read a topic as a table, and compare two tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

Sent = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""A record to send: partition, timestamp in ms, key, value, headers."""


def table(spark: SparkSession, kind: str, bootstrap: str, **options: Any) -> DataFrame:
    """Read a topic with a format; two underscores in names of `options` stand for a dot."""
    reader = spark.read.format(kind).option("kafka.bootstrap.servers", bootstrap)
    return reader.options(**_named(options)).load()


def stream(spark: SparkSession, kind: str, bootstrap: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format(kind).option("kafka.bootstrap.servers", bootstrap)
    return reader.options(**_named(options)).load()


def assert_same(ours: DataFrame, theirs: DataFrame) -> int:
    """Assert that both tables have the same columns and rows, with duplicates; return the number of rows."""
    assert ours.schema == theirs.schema
    assert ours.exceptAll(theirs).take(3) == []
    assert theirs.exceptAll(ours).take(3) == []
    return ours.count()


def send(bootstrap: str, topic: str, records: Iterable[Sent], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20} | _named(settings))
    send_with(producer, topic, records)
    assert producer.flush(30) == 0


def send_with(producer: Producer, topic: str, records: Iterable[Sent]) -> None:
    for partition, timestamp, key, value, headers in records:
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
        producer.poll(0)


def _named(options: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}
