"""The formats of records and the conditions of filters: the console consumer's line, kcat's format strings."""

from __future__ import annotations

import argparse

import pytest
from msgspec.structs import replace

from odradek.client.cli.output.record_formats import compile_format, from_properties
from odradek.client.cli.record_filter import condition
from odradek.client.record import ConsumerRecord
from odradek.protocol.records.batch_header import TimestampType

FULL = ConsumerRecord("orders", 3, 42, 1_700_000_000_000, b"k", b"value", (("a", b"1"), ("b", None), ("a", b"2")))
EMPTY = ConsumerRecord("orders", 0, 0, -1, None, None, (), None)
APPENDED = replace(FULL, timestamp_type=TimestampType.LOG_APPEND_TIME)


@pytest.mark.parametrize(
    ("properties", "record", "line"),
    [
        ({}, FULL, b"value\n"),
        ({}, EMPTY, b"null\n"),
        ({"print.key": "true", "null.literal": "(none)"}, EMPTY, b"(none)\t(none)\n"),
        ({"print.key": "true", "print.value": "false", "line.separator": ";"}, FULL, b"k;"),
        (
            {f"print.{part}": "TRUE" for part in ("key", "offset", "partition", "timestamp", "headers")},
            FULL,
            b"CreateTime:1700000000000\tPartition:3\tOffset:42\ta:1,b:null,a:2\tk\tvalue\n",
        ),
        ({"print.headers": "true", "headers.separator": " ", "key.separator": "|"}, FULL, b"a:1 b:null a:2|value\n"),
        ({"print.timestamp": "true"}, APPENDED, b"LogAppendTime:1700000000000\tvalue\n"),
        ({"print.headers": "true", "print.timestamp": "true"}, EMPTY, b"NO_TIMESTAMP\tNO_HEADERS\tnull\n"),
    ],
)
def test_the_line_of_the_console_consumer(properties: dict[str, str], record: ConsumerRecord, line: bytes) -> None:
    assert from_properties(properties.items()).format(record) == line


@pytest.mark.parametrize(
    ("text", "record", "printed"),
    [
        (r"%t[%p]@%o %T\n", FULL, b"orders[3]@42 1700000000000\n"),
        (r"%k(%K)=%s(%S) %h%%", FULL, b"k(1)=value(5) a=1,b=NULL,a=2%"),
        (r"%k(%K)=%s(%S) %h\t\x41\\n", EMPTY, b"(-1)=(-1) \tA\\n"),
        ("%s%s", FULL, b"valuevalue"),
    ],
)
def test_a_format_string(text: str, record: ConsumerRecord, printed: bytes) -> None:
    assert compile_format(text)(record) == printed


@pytest.mark.parametrize("text", ["%y", "%", "%%%"])
def test_an_unknown_letter_in_a_format_string(text: str) -> None:
    with pytest.raises(ValueError, match="there is no %"):
        compile_format(text)


@pytest.mark.parametrize(
    ("text", "of_full", "of_empty"),
    [
        ("key=k", True, False),
        ("key!=k", False, True),
        ("value=", False, False),
        ("value~^v.l", True, False),
        ("value!~x", True, True),
        ("header.a=2", True, False),
        ("header.a!=2", False, True),
        ("header.b=", False, False),
        ("header.c!=", True, True),
        ("value=value=1", False, False),
    ],
)
def test_conditions(text: str, of_full: bool, of_empty: bool) -> None:
    holds = condition(text)
    assert (holds(FULL), holds(EMPTY)) == (of_full, of_empty)


@pytest.mark.parametrize("text", ["", "key", "offset=3", "header=x", "header.=x", "value~[", "header.a"])
def test_text_that_is_not_a_condition(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        condition(text)
