"""The names of files and directories."""

from __future__ import annotations

import pytest

from odradek.broker.storage.names import (
    deleted_directory,
    file_name,
    is_deleted_directory,
    parse_file_name,
    parse_partition_directory,
)


def test_file_names() -> None:
    assert file_name(42, ".log") == "00000000000000000042.log"
    assert parse_file_name("00000000000000000042.index.deleted") == (42, ".index.deleted")
    assert parse_file_name("42.log") is None
    assert parse_file_name("leader-epoch-checkpoint") is None


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("a-0", ("a", 0)), ("a-b-12", ("a-b", 12)), ("a--3", ("a-", 3)), ("a-", None), ("a", None), ("-1", None),
        ("a-1.x-delete", None), ("a-1-stray", None), ("a-01", ("a", 1)),
    ],
)  # fmt: skip
def test_partition_directories(name: str, partition: tuple[str, int] | None) -> None:
    assert parse_partition_directory(name) == partition


def test_deleted_directories() -> None:
    name = deleted_directory("a-b", 7, bytes(range(16)))
    assert name == "a-b-7.000102030405060708090a0b0c0d0e0f-delete"
    assert is_deleted_directory(name)
    assert not is_deleted_directory("a-7")
    assert not is_deleted_directory("my-delete")
