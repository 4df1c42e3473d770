"""Literal records with the schema of the sources."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)

_SCHEMA = """key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,
    timestampType int, headers array<struct<key: string, value: binary>>"""


def record(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    topic: str = "t",
    partition: int = 0,
    seconds: float = 0,
) -> tuple[object, ...]:
    """Return one row; its timestamp is `seconds` after `START`."""
    time = START + timedelta(seconds=seconds)
    return (key, value, topic, partition, offset, time, 0, None)


def frame(spark: SparkSession, rows: Iterable[tuple[object, ...]]) -> DataFrame:
    return spark.createDataFrame(list(rows), _SCHEMA)
