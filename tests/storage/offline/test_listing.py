"""The partitions of a log directory, and the files that belong to each log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import LOG_SUFFIX
from odradek.broker.storage.offline.listing import NoLogDirError, PartitionFiles, list_partitions
from tests.storage.logs import TOPIC_ID, append, open_log_dir


def listed(path: Path) -> list[PartitionFiles]:
    return list_partitions(ReadOnlyFiles(), str(path))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A partition with segments at 0, 1 and 2."""
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig(segment_bytes=150))
    for _ in range(3):
        append(log, b"x" * 50)
    log_dir.close()
    return tmp_path / "t-0"


def named(base_offset: int, suffix: str = ".log") -> str:
    return f"{base_offset:020d}{suffix}"


def test_directories_without_a_segment_or_topic_id_are_no_partitions(directory: Path) -> None:
    for name in ("notes-2024", "__cluster_metadata-0", "t-1.0123456789abcdef0123456789abcdef-delete", "lost+found"):
        (directory.parent / name).mkdir()
    (directory.parent / "notes-2024" / "readme").touch()
    (directory.parent / "__cluster_metadata-0" / named(0)).touch()
    (directory.parent / "file-0").touch()

    (partition,) = listed(directory.parent)

    assert (partition.name, partition.key, partition.logs) == ("t-0", ("t", 0), [0, 1, 2])
    assert partition.size == sum(path.stat().st_size for path in directory.glob("*.log"))
    assert partition.path_of(1, LOG_SUFFIX) == f"{directory}/{named(1)}"


def test_a_directory_without_partitions_and_identity_is_no_log_directory(directory: Path) -> None:
    with pytest.raises(NoLogDirError, match=r"neither meta\.properties nor a partition"):
        listed(directory)
    with pytest.raises(FileNotFoundError):
        listed(directory / "elsewhere")


def test_an_empty_log_directory_has_no_partitions(directory: Path) -> None:
    shutil.rmtree(directory)
    assert listed(directory.parent) == []


def test_deleted_and_unfinished_files_are_no_segments(directory: Path) -> None:
    (directory / named(0)).rename(directory / named(0, ".log.deleted"))
    (directory / named(1, ".log.cleaned")).write_bytes(b"half")
    (directory / named(2, ".log.swap")).write_bytes(b"above the unfinished one")

    (partition,) = listed(directory.parent)

    assert partition.logs == [1, 2]
    assert partition.path_of(2, LOG_SUFFIX) == f"{directory}/{named(2)}"


def test_a_complete_swap_takes_the_place_of_the_segments_that_it_covers(directory: Path) -> None:
    merged = (directory / named(0)).read_bytes() + (directory / named(1)).read_bytes()
    (directory / named(0, ".log.swap")).write_bytes(merged)

    (partition,) = listed(directory.parent)

    assert partition.logs == [0, 2]
    assert partition.path_of(0, LOG_SUFFIX) == f"{directory}/{named(0, '.log.swap')}"
    assert partition.segments[0] == {LOG_SUFFIX: len(merged)}


def test_a_damaged_swap_covers_nothing(directory: Path) -> None:
    (directory / named(0, ".log.swap")).write_bytes(b"no batch")

    (partition,) = listed(directory.parent)

    assert partition.logs == [0, 1, 2]
    assert partition.path_of(0, LOG_SUFFIX) == f"{directory}/{named(0)}"


def test_an_index_without_a_log_is_listed(directory: Path) -> None:
    (directory / named(1)).unlink()

    (partition,) = listed(directory.parent)

    assert partition.logs == [0, 2]
    assert sorted(partition.segments[1]) == [".index", ".timeindex"]
