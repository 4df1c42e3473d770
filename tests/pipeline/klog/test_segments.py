"""Log directories that a broker is writing to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from odradek.broker.storage import open_log_dir as stored_log_dir
from odradek.broker.storage.log_config import LogConfig
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
from tests.storage.logs import TOPIC_ID, append, open_log_dir


def test_nothing_past_the_high_watermark_is_read(golden: Path) -> None:
    checkpoint = golden / "replication-offset-checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("rolled 0 20000", "rolled 0 12345"))
    begin_a_batch(segment_of(golden, "rolled"))
    with lock_as_kafka(golden):
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


@pytest.mark.parametrize("flipped", [None, *range(9, 13)])
def test_after_a_kill_a_log_is_read_to_where_recovery_ends_it(
    flipped: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Thirteen records in two segments, of nine below the stored high watermark; one of the others is damaged."""
    path = tmp_path / "logs"
    log_dir = open_log_dir(path)
    log = log_dir.create_log("orders", 0, TOPIC_ID, LogConfig(segment_bytes=800))
    for number in range(13):
        append(log, b"%d" % number)
    places = {
        batch.base_offset: (Path(segment.log.path), batch.position)
        for segment in log.segments
        for batch in segment.log.batches()
    }
    log_dir.close()
    assert places[9][0] != places[12][0]
    (path / ".kafka_cleanshutdown").unlink()
    (path / "replication-offset-checkpoint").write_text("0\n1\norders 0 9\n")
    (path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 9\n")
    if flipped is not None:
        segment, position = places[flipped]
        data = bytearray(segment.read_bytes())
        data[position + 65] ^= 1
        segment.write_bytes(data)
    with lock_as_odradek(path):
        assert Reading(path).offsets() == list(range(9))
    assert not caplog.records
    end = 13 if flipped is None else flipped
    assert Reading(path).offsets() == list(range(end))
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == (end > 9)
    assert all(f"it is read up to offset {end}, where recovery would end it" in text for text in warnings)
    with stored_log_dir(path) as recovered:
        assert recovered.partitions["orders", 0].log_end_offset == end
