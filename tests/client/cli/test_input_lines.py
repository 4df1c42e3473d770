"""The record of a line of input: text as in Kafka's console producer, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.client.cli.input.input_record import InputRecord, LineError
from odradek.client.cli.input.json_records import format_json, parse_json
from odradek.client.cli.input.lines import read_lines
from odradek.client.cli.input.text_lines import TextLines, from_properties
from odradek.client.record import ConsumerRecord

EVERYTHING = {"parse.key": "true", "parse.headers": "true", "null.marker": "NULL"}


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        ({}, b"a\tb", InputRecord(None, b"a\tb", [])),
        ({"parse.key": "true"}, b"k\tv\tw", InputRecord(b"k", b"v\tw", [])),
        ({"parse.key": "true", "key.separator": "::"}, b"k::v", InputRecord(b"k", b"v", [])),
        ({"parse.key": "true"}, b"\t", InputRecord(b"", b"", [])),
        ({"parse.headers": "true"}, b"a:1,b:\tv", InputRecord(None, b"v", [("a", b"1"), ("b", b"")])),
        ({"parse.headers": "true"}, b"a:x:y\tv", InputRecord(None, b"v", [("a", b"x:y")])),
        ({"parse.headers": "true"}, b"a:1,,\tv", InputRecord(None, b"v", [("a", b"1")])),
        (EVERYTHING, b"a:NULL\tNULL\tNULL", InputRecord(None, None, [("a", None)])),
        (EVERYTHING, b"NULL\tk\tv", InputRecord(b"k", b"v", [])),
        ({"parse.key": "true", "ignore.error": "true"}, b"no key", InputRecord(None, b"no key", [])),
        ({"parse.headers": "true", "ignore.error": "true"}, b"a\tv", InputRecord(None, b"v", [("a", None)])),
    ],
)  # fmt: skip
def test_a_line_of_text(properties: dict[str, str], line: bytes, record: InputRecord) -> None:
    assert from_properties(properties.items()).parse(line, 1) == record


@pytest.mark.parametrize(
    ("lines", "line", "complaint"),
    [
        (TextLines(key_separator=b":"), b"x", "line 7 has no key: it does not contain ':'"),
        (TextLines(headers_delimiter=b"|"), b"x", "line 7 has no headers: it does not contain '|'"),
        (TextLines(headers_delimiter=b"|"), b"|v", "line 7 has a header without a value: b'' does not contain ':'"),
        (TextLines(headers_delimiter=b"|"), b"x|v", "line 7 has a header without a value: b'x' does not contain ':'"),
        (TextLines(headers_delimiter=b"|", null_marker=b"N"), b"N:1|v", "line 7 has a header whose name is the null"),
    ],
)
def test_a_line_of_text_that_is_not_a_record(lines: TextLines, line: bytes, complaint: str) -> None:
    with pytest.raises(LineError, match=complaint.replace("|", r"\|")):
        lines.parse(line, 7)


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("{}", InputRecord(None, None, [])),
        ('{"value": "v", "key": null, "partition": 3, "timestamp": 5}', InputRecord(None, b"v", [], 3, 5)),
        ('{"value": {"base64": "/wA="}}', InputRecord(None, b"\xff\0", [])),
        ('{"value": {"a": [1, 2]}, "key": 7}', InputRecord(b"7", b'{"a":[1,2]}', [])),
        ('{"headers": {"a": "1", "b": null}}', InputRecord(None, None, [("a", b"1"), ("b", None)])),
        ('{"headers": [["a", "1"], ["a", "2"]]}', InputRecord(None, None, [("a", b"1"), ("a", b"2")])),
        ('{"timestamp": "2023-11-14T22:13:20Z"}', InputRecord(None, None, [], None, 1_700_000_000_000)),
        ('{"value": 1.10, "key": 12345678901234567890.123456789}',
         InputRecord(b"12345678901234567890.123456789", b"1.10", [])),
        ('{"value": {"a": [1.10, 1E400 ,-0.0, true], "b  c" : {}}}',
         InputRecord(None, b'{"a":[1.10,1E400,-0.0,true],"b  c":{}}', [])),
        ('{"headers": [["a", 1.10], ["b", {"base64": "/w=="}], [2.50, null]]}',
         InputRecord(None, None, [("a", b"1.10"), ("b", b"\xff"), ("2.50", None)])),
        ('{"headers": {"a": 1.10}}', InputRecord(None, None, [("a", b"1.10")])),
        ('{"value": {"base64": "/w==", "a": 1}}', InputRecord(None, b'{"base64":"/w==","a":1}', [])),
        ('{"timestamp": -1, "timestamp_type": "NoTimestampType"}', InputRecord(None, None, [])),
        ('{"topic": "t", "offset": 4, "timestamp_type": "CreateTime", "key": "k"}', InputRecord(b"k", None, [])),
    ],
)  # fmt: skip
def test_a_line_of_json(line: str, record: InputRecord) -> None:
    assert parse_json(line.encode(), 1) == record


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"val": 1}',
        '{"partition": -1}',
        '{"timestamp": "noon"}',
        '{"timestamp": -5}',
        '{"timestamp": 9223372036854775808}',
        '{"timestamp": "1969-12-31T23:59:59Z"}',
        '{"value": 01}',
        f'{{"value": {"[" * 100_000}{"]" * 100_000}}}',
        '{"value": {"base64": "?"}}',
        '{"value": {"base64": 1.5}}',
        '{"headers": [["a"]]}',
        '{"headers": [[null, "a"]]}',
        '{"value": "a"',
    ],
)
def test_a_line_of_json_that_is_not_a_record(line: str) -> None:
    with pytest.raises(LineError, match=r"^line 9 is not a record in JSON: "):
        parse_json(line.encode(), 9)


def test_a_line_of_json_with_bytes_that_are_not_text_is_not_a_record() -> None:
    for line in (b'{"value": "\xff"}', b'{"value": {"a": "\xff"}}'):
        with pytest.raises(LineError, match=r"^line 9 is not a record in JSON: "):
            parse_json(line, 9)


def test_a_blank_line_between_lines_of_json_is_no_record() -> None:
    assert [parse_json(line, 1) for line in (b"", b" \t", b"{}")] == [None, None, InputRecord(None, None, [])]


async def read_into(lines: list[bytes], file: Path, longest: int) -> None:
    with file.open("rb") as opened:
        async for some in read_lines(opened.fileno(), longest):
            lines += some


async def test_a_line_may_be_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\n" + b"b" * 1_000_000 + b"\r\n\n" + b"c" * 700_000)
    lines: list[bytes] = []
    await read_into(lines, file, 1_000_002)
    assert lines == [b"a", b"b" * 1_000_000, b"", b"c" * 700_000]


async def test_a_line_that_is_too_long_is_refused_after_the_lines_before_it(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\nb\n" + b"c" * 5_000_000)
    lines: list[bytes] = []
    with pytest.raises(LineError, match=r"^line 3 is longer than 3000000 bytes: "):
        await read_into(lines, file, 3_000_000)
    assert lines == [b"a", b"b"]


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"k", b"v", []),
        (None, None, [("a", None), ("a", b"1")]),
        ("Grüße".encode(), b'"\\\n', [("ü", b"\xfe")]),
        (b"\xff\x00", b"", [("\udcff", b"")]),
    ],
)
def test_what_is_printed_as_json_is_read_as_the_same_record(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    line = format_json(ConsumerRecord("t", 2, 7, 1_700_000_000_000, key, value, headers))
    assert line.count(b"\n") == 1
    assert json.loads(line)["offset"] == 7
    assert parse_json(line[:-1], 1) == InputRecord(key, value, headers, 2, 1_700_000_000_000)
