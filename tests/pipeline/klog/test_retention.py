"""Planning and reading while segments and partitions are being removed."""

from __future__ import annotations

import shutil
from threading import Thread

import pytest

from odradek.client.record import TopicPartition
from odradek.pipeline.klog import segments as klog_segments
from odradek.pipeline.klog.plan import OffsetRangeError
from odradek.pipeline.klog.segments import DirectoryChangesError, LogDirectory, while_it_changes
from tests.pipeline.klog.readings import Reading, Writing, segments

PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which take no time."""
    found: list[float] = []
    monkeypatch.setattr(klog_segments.time, "sleep", found.append)
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
