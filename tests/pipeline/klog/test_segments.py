"""Log directories that a broker is writing to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from odradek.pipeline.klog.segment_reader import SegmentGoneError
from odradek.pipeline.records.damage import CorruptRecordsError
from tests.pipeline.klog.readings import (
    Reading,
    Writing,
    begin_a_batch,
    lock_as_kafka,
    lock_as_odradek,
    segment_of,
    segments,
)


def test_nothing_past_the_high_watermark_is_read(golden: Path) -> None:
    checkpoint = golden / "replication-offset-checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("rolled 0 20000", "rolled 0 12345"))
    begin_a_batch(segment_of(golden, "rolled"))
    assert Reading(golden, subscribe="rolled").offsets() == list(range(12345))
    (golden / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    with pytest.raises(CorruptRecordsError, match="ends inside a batch"):
        Reading(golden, subscribe="rolled").offsets()


@pytest.mark.parametrize("lock", [lock_as_odradek, lock_as_kafka])
def test_without_a_high_watermark_a_locked_log_ends_with_the_last_complete_batch(
    golden: Path, lock: Callable[[Path], AbstractContextManager[None]]
) -> None:
    (golden / "replication-offset-checkpoint").unlink()
    begin_a_batch(segment_of(golden, "rolled"))
    with lock(golden):
        assert len(Reading(golden, subscribe="rolled").offsets()) == 20_000
    with pytest.raises(CorruptRecordsError, match="ends inside a batch"):
        Reading(golden, subscribe="rolled").offsets()


def test_a_running_broker_is_read_up_to_its_checkpoint(writing: Writing) -> None:
    path = writing.path
    for _ in range(100):
        writing.append(100)
    assert len(segments(path)) > 3
    complete = f"0\n1\norders 0 {writing.log.log_end_offset}\n"
    (path / "replication-offset-checkpoint").write_text(complete)
    writing.append(10)
    reading = Reading(path, minPartitions="8")
    assert len(reading.tasks) > 5
    assert reading.offsets() == list(range(10_000))


def test_a_new_segment_without_index_entries_logs_no_warning(
    writing: Writing, caplog: pytest.LogCaptureFixture
) -> None:
    writing.append(2)
    writing.append(2)
    assert Reading(writing.path, startingOffsets='{"orders":{"0":1}}').offsets() == [1, 2, 3]
    assert not caplog.records


def test_read_committed_stops_at_an_open_transaction(writing: Writing) -> None:
    path = writing.path
    writing.append(10)
    writing.append(5, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    writing.append(10)
    assert Reading(path, isolation__level="read_committed").offsets() == list(range(10))
    assert len(Reading(path).offsets()) == 25
    writing.append_marker(7, commit=False)
    writing.append(1, producer_id=7, producer_epoch=0, base_sequence=5, is_transactional=True)
    writing.append_marker(7, commit=True)
    assert Reading(path, isolation__level="read_committed").offsets() == [*range(10), *range(15, 25), 26]


def test_a_renamed_segment_is_read_and_a_deleted_one_is_reported(writing: Writing) -> None:
    path = writing.path
    for _ in range(50):
        writing.append(100)
    writing.close()
    reading = Reading(path)
    first, second = segments(path)[:2]
    first.rename(f"{first}.deleted")
    assert reading.offsets() == list(range(5000))
    second.rename(f"{second}.old")
    shutil.copy(f"{second}.old", second)  # another file with the same name, as after compaction
    with pytest.raises(SegmentGoneError, match=f"{second.name} was removed .* read again"):
        reading.offsets()
    allowed = Reading(path, failOnDataLoss="false")
    Path(f"{first}.deleted").unlink()
    second.unlink()
    assert allowed.offsets() == list(range(int(segments(path)[0].stem), 5000))


def test_an_interrupted_swap_is_read_as_completed(golden: Path) -> None:
    directory = golden / "rolled-0"
    first = min(directory.glob("*.log"))
    first.rename(f"{first}.swap")
    (directory / "00000000000000099999.log.cleaned").write_bytes(b"unfinished")
    assert len(Reading(golden, subscribe="rolled").offsets()) == 20_000
