"""The columns of a record, with the names and types of Spark's Kafka connector, for Spark and for Arrow.

| column | Spark | Arrow | |
|---|---|---|---|
| key, value | binary | binary | null if the record has none |
| topic | string | string | |
| partition | int | int32 | |
| offset | long | int64 | |
| timestamp | timestamp | timestamp[us, UTC] | in milliseconds in records; null if microseconds overflow 64 bits |
| timestampType | int | int32 | 0 create time, 1 log append time, -1 none (messages of magic 0) |
| headers | array of struct key string, value binary | list of the same | optional; null, not empty, without headers |
| _corrupt_record | string | string | with `mode` PERMISSIVE: the damage and its position; null for a record |

Source: Spark `KafkaRecordToRowConverter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CORRUPT_RECORD: Final = "_corrupt_record"
HEADERS: Final = "headers"
LARGEST_MS: Final = ((1 << 63) - 1) // 1000
"""The largest timestamp, in ms, that the column can have; the smallest is `SMALLEST_MS`."""
SMALLEST_MS: Final = -LARGEST_MS
PLAIN_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", HEADER_TYPE))
ARROW_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    HEADERS: HEADERS_TYPE,
    CORRUPT_RECORD: pa.string(),
}


def column_names(*, include_headers: bool = False, include_corrupt: bool = False) -> tuple[str, ...]:
    """Return the names of a source's columns, in order."""
    return PLAIN_COLUMNS + (HEADERS,) * include_headers + (CORRUPT_RECORD,) * include_corrupt


def spark_schema(names: Sequence[str]) -> StructType:
    """Return the Spark schema of these columns. Raises KeyError for an unknown name."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema(names))


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of batches with these columns. Raises KeyError for an unknown name."""
    return _arrow_schema(tuple(names))


@lru_cache(maxsize=64)  # needed once for each group of batches
def _arrow_schema(names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([pa.field(name, ARROW_TYPES[name]) for name in names])
