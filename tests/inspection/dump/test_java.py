"""Java's arithmetic, numbers and paths, as Java 17 has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.inspection.dump.complaints import DumpError
from odradek.broker.inspection.dump.java import absolute_path, file_path, int32, int64, parse_long


@pytest.mark.parametrize(
    ("text", "path"), [("a//b", "a/b"), ("a//", "a"), ("/", "/"), ("//", "/"), ("./a/../b", "./a/../b"), ("", "")]
)
def test_path(text: str, path: str) -> None:
    assert file_path(text) == path


def test_absolute_path_keeps_dots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_path("./a") == f"{tmp_path}/./a"
    assert absolute_path("/a/../b") == "/a/../b"


def test_integers_wrap_around() -> None:
    assert (int32(0x7FFFFFFF), int32(0x80000000), int32(-0x80000001)) == (0x7FFFFFFF, -0x80000000, 0x7FFFFFFF)
    assert (int64(1 << 63), int64(-(1 << 63) - 1)) == (-(1 << 63), (1 << 63) - 1)


def test_numbers_of_64_bits_in_ascii_digits() -> None:
    assert [parse_long(text) for text in ("00012", "+5", "-9223372036854775808")] == [12, 5, -(1 << 63)]
    for text in ("", "-", "1_0", " 1", "٣", "9223372036854775808"):
        with pytest.raises(DumpError):
            parse_long(text)
