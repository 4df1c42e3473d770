from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.store.etcd.wire import (
    MalformedMessageError,
    bytes_field,
    fields,
    message_field,
    number_field,
    varint,
)

_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (-1, b"\xff" * 9 + b"\x01")],
)
def test_a_varint_has_seven_bits_in_each_byte(value: int, encoded: bytes) -> None:
    assert varint(value) == encoded


def test_a_message_of_the_specification() -> None:
    """The examples of protobuf's documentation: a = 150, and a text."""
    assert number_field(1, 150) == bytes.fromhex("089601")
    assert bytes_field(2, b"testing") == bytes.fromhex("120774657374696e67")


def test_a_default_is_not_written_and_an_empty_message_is() -> None:
    assert number_field(1, 0) == bytes_field(1, b"") == b""
    assert message_field(3, b"") == b"\x1a\x00"


@given(st.lists(st.tuples(st.integers(1, 1 << 28), st.one_of(_INT64, st.binary(max_size=300)))))
def test_fields_are_read_as_they_were_written(written: list[tuple[int, int | bytes]]) -> None:
    message = b"".join(
        message_field(number, value) if isinstance(value, bytes) else varint(number << 3) + varint(value)
        for number, value in written
    )

    read = [
        (number, data if isinstance(value, bytes) else integer)
        for (number, integer, data), (_, value) in zip(fields(message), written, strict=True)
    ]

    assert read == written


def test_fields_of_fixed_size_are_skipped() -> None:
    message = b"\x09" + b"x" * 8 + b"\x0d" + b"y" * 4 + number_field(2, 7)

    assert list(fields(message)) == [(2, 7, b"")]


@pytest.mark.parametrize(
    "message",
    [
        b"\x08",
        b"\x08" + b"\x80" * 11,
        b"\x12\x05four",
        b"\x12" + varint(1 << 62),
        b"\x09short",
        b"\x0b",
        b"\x80",
    ],
    ids=["no value", "endless varint", "too short", "huge length", "short fixed", "a group", "half a tag"],
)
def test_a_malformed_message_raises_an_error(message: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        list(fields(message))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_an_error(message: bytes) -> None:
    try:
        for number, _, data in fields(message):
            assert number >= 0
            assert len(data) <= len(message)
    except MalformedMessageError:
        pass
