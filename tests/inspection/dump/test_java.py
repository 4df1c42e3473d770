"""What Java does, as Java 17 did it."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.inspection.dump.errors import DumpError
from odradek.broker.inspection.dump.java import absolute_path, file_path, hash_map_order, int32, int64, parse_long

# The order of `HashMap.keySet()` after `computeIfAbsent("/data/t-<n>/00000000000000000000.log", …)` for n from 0 on.
ORDERS = [
    "3 1 0 2 4",
    "10 9 6 3 1 0 7 11 2 5 4 8",
    "10 9 6 3 1 0 7 11 2 5 4 8 12",
    "10 9 3 11 2 5 6 1 0 7 13 4 8 12",
    "3 29 28 15 27 2 5 18 14 20 6 1 0 7 21 17 16 8 10 9 23 11 22 26 25 19 13 24 4 12",
]


@pytest.mark.parametrize("order", ORDERS)
def test_keys_of_a_hash_map(order: str) -> None:
    numbers = [int(number) for number in order.split()]
    paths = [f"/data/t-{number}/00000000000000000000.log" for number in range(len(numbers))]
    assert hash_map_order(paths) == [paths[number] for number in numbers]


def test_keys_of_a_hash_map_that_collide_or_are_not_ascii() -> None:
    keys = ["Aa", "BB", "grün", "日本\U0001f600", "C#", "Bb"]
    assert hash_map_order(keys) == ["Bb", "C#", "BB", "Aa", "日本\U0001f600", "grün"]


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
