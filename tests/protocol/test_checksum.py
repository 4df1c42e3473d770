from __future__ import annotations

import pytest

from odradek.protocol.checksum import crc32, crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # RFC 3720, B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
    ],
)
def test_crc32c_of_the_published_examples(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


def test_crc32_of_the_usual_check_value() -> None:
    assert crc32(b"123456789") == 0xCBF43926


def test_a_slice_of_a_writable_buffer_has_the_same_checksum() -> None:
    buffer = bytearray(b"xx123456789yy")
    assert crc32c(memoryview(buffer)[2:11]) == 0xE3069283
    assert crc32(memoryview(buffer)[2:11]) == 0xCBF43926
