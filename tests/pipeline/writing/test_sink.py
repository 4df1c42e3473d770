from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from odradek.pipeline.options.broker_options import write_options
from odradek.pipeline.writing.sink import BrokerWriter, check_columns

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}
TO_TOPIC = BROKER | {"topic": "t"}


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


BINARY, TEXT, INT, LONG = BinaryType(), StringType(), IntegerType(), LongType()
HEADERS = ArrayType(columns(key=TEXT, value=BINARY))
VALUE = columns(value=BINARY)


@pytest.mark.parametrize("schema", [VALUE, columns(key=TEXT, value=TEXT, partition=INT, other=LONG, headers=HEADERS)])
def test_valid_columns_are_accepted(schema: StructType) -> None:
    check_columns(schema, write_options(TO_TOPIC))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (columns(key=BINARY), "the column `value` is missing"),
        (columns(value=LONG), "column value must be binary or string, not bigint"),
        (columns(value=BINARY, key=INT), "column key must be binary or string, not int"),
        (columns(value=BINARY, partition=LONG), "column partition must be int, not bigint"),
        (columns(value=BINARY, headers=ArrayType(TEXT)), "column headers must be array<struct<key:string"),
    ],
)
def test_invalid_columns_are_reported(schema: StructType, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_columns(schema, write_options(TO_TOPIC))


def test_a_topic_is_required_as_an_option_or_a_column() -> None:
    check_columns(columns(topic=TEXT, value=BINARY), write_options(BROKER))
    with pytest.raises(ValueError, match="no topic to write to"):
        check_columns(VALUE, write_options(BROKER))


def test_overwrite_mode_is_rejected() -> None:
    with pytest.raises(ValueError, match="a topic only grows"):
        BrokerWriter(TO_TOPIC, VALUE, overwrite=True)
