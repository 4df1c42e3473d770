from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.varint import SHORT_VARINTS, encode_varint, read_varint, read_varlong

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (8191, "fe7f"),
        (8192, "808001"),
        ((1 << 31) - 1, "feffffff0f"),
        (-(1 << 31), "ffffffff0f"),
        ((1 << 63) - 1, "feffffffffffffffff01"),
        (-(1 << 63), "ffffffffffffffffff01"),
    ],
)
def test_known_encodings(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varlong(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(INT32)
def test_varints_of_32_bits_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varint(b"x" + encoded + b"y", 1) == (value, 1 + len(encoded))


@given(INT64)
def test_varints_of_64_bits_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varlong(b"x" + encoded + b"y", 1) == (value, 1 + len(encoded))


def test_the_table_has_all_encodings_of_one_or_two_bytes() -> None:
    assert [read_varint(encoded, 0)[0] for encoded in SHORT_VARINTS] == list(range(8192))
    assert max(map(len, SHORT_VARINTS)) == 2


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_more_than_64_bits_cannot_be_written(value: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_varint(value)


@pytest.mark.parametrize("encoded", ["ffffffff10", "8080808080", "808080808000"])
def test_more_than_32_bits_are_refused(encoded: str) -> None:
    with pytest.raises(RemoteProtocolError):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["ffffffffffffffffff02", "80808080808080808080", "8080808080808080808000"])
def test_more_than_64_bits_are_refused(encoded: str) -> None:
    with pytest.raises(RemoteProtocolError):
        read_varlong(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "8080"])
def test_a_truncated_varint_is_an_index_error(encoded: str) -> None:
    with pytest.raises(IndexError):
        read_varint(bytes.fromhex(encoded), 0)
