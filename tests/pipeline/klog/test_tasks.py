"""The tasks of topics with many small partitions, and the files that are open meanwhile."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.pipeline.records.damage import CorruptRecordsError
from tests.pipeline.klog.readings import GOLDEN, Reading, expected, segment_of

PARTITIONS = 300


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A log directory with the same 200 records in each of 300 partitions."""
    path = tmp_path / "logs"
    path.mkdir()
    shutil.copy(GOLDEN / "meta.properties", path)
    first = shutil.copytree(GOLDEN / "codec-lz4-0", path / "many-0")
    for number in range(1, PARTITIONS):
        shutil.copytree(first, path / f"many-{number}", copy_function=os.link)
    return path


@contextmanager
def few_descriptors(count: int) -> Iterator[None]:
    """Allow this process only `count` more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_small_partitions_share_tasks_and_few_files_are_open(many: Path) -> None:
    with few_descriptors(100):
        reading = Reading(many)
        rows = reading.rows()
    assert len(reading.pieces) == PARTITIONS
    assert 1 <= len(reading.tasks) <= (os.cpu_count() or 1)
    values = [row["value"] for row in rows[:200]]
    assert len(values) == len(expected("codec-lz4.records"))
    offsets: dict[int, list[int]] = {}
    for row in rows:
        offsets.setdefault(row["partition"], []).append(row["offset"])
        assert (row["topic"], row["value"], row["_corrupt_record"]) == ("many", values[row["offset"]], None)
    assert offsets == {number: list(range(200)) for number in range(PARTITIONS)}


def test_the_number_of_tasks_follows_the_options(many: Path) -> None:
    assert len(Reading(many, minPartitions="60").tasks) >= 60
    assert len(Reading(many, maxPartitionBytes="1").tasks) >= PARTITIONS
    assert len(Reading(many, maxPartitionBytes=str(1 << 30)).tasks) == 1


def test_a_range_applies_to_each_partition_of_a_task(many: Path) -> None:
    each = {str(number): number % 200 for number in range(PARTITIONS)}
    rows = Reading(many, startingOffsets=f'{{"many":{str(each).replace(chr(39), chr(34))}}}').rows()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (number, offset) for number in range(PARTITIONS) for offset in range(number % 200, 200)
    ]


def test_damage_in_one_of_many_partitions_is_reported_as_its_own(many: Path) -> None:
    segment = segment_of(many, "many")
    data = bytearray(segment.read_bytes())
    segment.unlink()
    data[100] ^= 1
    segment.write_bytes(data)
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position 0 "):
        Reading(many).rows()
    rows = Reading(many, mode="PERMISSIVE").rows()
    (damaged,) = [row for row in rows if row["_corrupt_record"] is not None]
    assert (damaged["topic"], damaged["partition"]) == ("many", 0)
    assert {row["partition"] for row in rows} == set(range(PARTITIONS))
    assert (PARTITIONS - 1) * 200 < len(rows) < PARTITIONS * 200
