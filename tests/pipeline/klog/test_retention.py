"""Planning and reading while segments and partitions are being removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from odradek.broker.storage.offline import live_log
from odradek.client.record import TopicPartition
from odradek.pipeline.klog import segment_ranges
from odradek.pipeline.klog import segments as klog_segments
from odradek.pipeline.klog.plan import OffsetRangeError
from odradek.pipeline.klog.segments import DirectoryChangesError, LogDirectory, while_it_changes
from tests.pipeline.klog.readings import Reading, Writing, segments

PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which take no time."""
    found: list[float] = []
    # Not time.sleep itself: a thread of an earlier test that sleeps in a loop would run without a pause.
    monkeypatch.setattr(klog_segments, "time", SimpleNamespace(sleep=found.append))
    return found


def test_a_partition_that_changes_is_read_again_after_growing_pauses(pauses: list[float]) -> None:
    def action() -> str:
        if len(pauses) < 5:
            raise FileNotFoundError(2, "gone", "00.log")
        return "read"

    assert while_it_changes(action, PARTITION) == "read"
    assert pauses == sorted(set(pauses))
    assert len(pauses) == 5


def test_attempts_are_bounded(pauses: list[float]) -> None:
    def action() -> str:
        raise FileNotFoundError(2, "gone", "00.log")

    with pytest.raises(DirectoryChangesError, match=r"orders-0 could not be read: 00\.log .* failOnDataLoss"):
        while_it_changes(action, PARTITION)
    assert 2 < sum(pauses) < 10
    assert while_it_changes(action, PARTITION, or_nothing=True) is None


def test_a_partition_without_a_segment_is_left_out_only_without_fail_on_data_loss(
    writing: Writing, pauses: list[float]
) -> None:
    writing.append(1)
    empty = writing.path / "orders-1"
    empty.mkdir()
    shutil.copy(writing.path / "orders-0" / "partition.metadata", empty)
    assert Reading(writing.path, failOnDataLoss="false").offsets() == [0]
    with pytest.raises(DirectoryChangesError, match="orders-1"):
        Reading(writing.path)
    assert pauses


def test_a_partition_that_is_deleted_during_planning(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    writing.append(1)
    deleted = shutil.copytree(writing.path / "orders-0", writing.path / "orders-1")
    listed = LogDirectory.partitions

    def partitions(directory: LogDirectory, topics: set[str]) -> list[TopicPartition]:
        found = listed(directory, topics)
        shutil.rmtree(deleted, ignore_errors=True)
        return found

    monkeypatch.setattr(LogDirectory, "partitions", partitions)
    assert Reading(writing.path, failOnDataLoss="false").offsets() == [0]
    shutil.copytree(writing.path / "orders-0", deleted)
    with pytest.raises(OffsetRangeError, match="orders-1 was deleted"):
        Reading(writing.path)


@pytest.fixture
def before_each_stat(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], None]], None]:
    """Sets the action that runs before planning reads the status of a file, as another process could act."""
    status_of = live_log.status_of

    def start(action: Callable[[Path], None]) -> None:
        def interrupted(path: str) -> os.stat_result:
            action(Path(path))
            return status_of(path)

        for module in (live_log, segment_ranges):
            monkeypatch.setattr(module, "status_of", interrupted)

    return start


def mark_deleted(log: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        log.with_suffix(suffix).rename(log.with_suffix(f"{suffix}.deleted"))


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_plan_is_made_although_retention_removes_a_segment_before_each_look_at_one(
    writing: Writing,
    pauses: list[float],
    before_each_stat: Callable[[Callable[[Path], None]], None],
    fail_on_data_loss: str,
) -> None:
    for _ in range(60):
        writing.append(1000, key=None)
    *removed, last = segments(writing.path)
    assert len(removed) > 20

    def retain(_: Path) -> None:
        if removed:
            mark_deleted(removed.pop(0))

    before_each_stat(retain)
    offsets = Reading(writing.path, failOnDataLoss=fail_on_data_loss).offsets()
    assert (offsets[0], offsets[-1], len(offsets)) == (int(last.stem), 59_999, 60_000 - int(last.stem))
    assert sorted(set(offsets)) == offsets
    assert pauses == []


def test_segments_that_compaction_is_replacing_do_not_count_as_removed(
    writing: Writing, pauses: list[float], before_each_stat: Callable[[Callable[[Path], None]], None]
) -> None:
    for _ in range(5):
        writing.append(1000, key=None)
    first, *_ = segments(writing.path)
    files = [first.with_suffix(suffix) for suffix in (".log", ".index", ".timeindex")]
    swaps = [file.with_name(f"{file.name}.swap") for file in files]

    def replace(path: Path) -> None:
        if path == first and not pauses:
            for file, swap in zip(files, swaps, strict=True):
                shutil.copy(file, swap)
            mark_deleted(first)
        elif path == swaps[0] and len(pauses) == 1 and path.exists():
            for file, swap in zip(files, swaps, strict=True):
                swap.rename(file)

    before_each_stat(replace)
    assert Reading(writing.path, failOnDataLoss="false").offsets() == list(range(5000))
    assert len(pauses) == 2


def test_fast_retention_does_not_end_a_query_that_allows_it(writing: Writing) -> None:
    for _ in range(60):
        writing.append(1000, key=None)
    writing.close()
    *removed, last = segments(writing.path)
    assert len(removed) > 20

    def retain() -> None:
        for segment in removed:
            for suffix in (".log", ".index", ".timeindex"):
                file = segment.with_suffix(suffix)
                file.rename(f"{file}.deleted").unlink()

    retention = Thread(target=retain)
    retention.start()
    rounds = 0
    while retention.is_alive() or not rounds:
        reading = Reading(writing.path, failOnDataLoss="false", minPartitions="8")
        offsets = reading.offsets()
        assert offsets == sorted(set(offsets))
        assert offsets[-1] == 59_999
        rounds += 1
    retention.join()
    assert Reading(writing.path).offsets() == list(range(int(last.stem), 60_000))
