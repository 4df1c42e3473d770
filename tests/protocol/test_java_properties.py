from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.protocol.java_properties import Entry, MalformedPropertiesError, decode, parse

JAVA = json.loads((Path(__file__).parent / "data" / "java-properties.json").read_text())


@pytest.mark.parametrize("case", JAVA, ids=lambda case: repr(case["text"]))
def test_a_file_is_read_as_in_java(case: dict[str, object]) -> None:
    assert {entry.key: entry.value for entry in parse(str(case["text"]))} == case["properties"]


def test_an_entry_has_the_number_of_its_first_line() -> None:
    text = "# comment\na=1\n\nb=\\\n  2,\\\n  3\nc=4"

    assert parse(text) == [Entry("a", "1", 2), Entry("b", "2,3", 4), Entry("c", "4", 7)]


def test_duplicates_are_all_reported() -> None:
    assert parse("a=1\na=2") == [Entry("a", "1", 1), Entry("a", "2", 2)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\u", "b=1\na=\\u 041"])
def test_an_incomplete_unicode_escape_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(MalformedPropertiesError, match=f"line {text.count(chr(10)) + 1}: .* four hexadecimal digits"):
        parse(text)


def test_files_are_utf_8_or_else_iso_8859_1() -> None:
    assert decode("a=é".encode()) == "a=é"
    assert decode(b"\xef\xbb\xbfa=b") == "a=b"
    assert decode("a=é".encode("iso-8859-1")) == "a=é"
