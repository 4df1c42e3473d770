"""Damaged segment files, and missing indexes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.pipeline.klog import segment_reader
from odradek.pipeline.records.damage import CorruptRecordsError
from tests.pipeline.klog.readings import GOLDEN, Reading, Writing, segment_of


def spoil(path: Path, position: int, value: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(value)


def test_a_flipped_byte_is_reported_with_file_and_position(golden: Path) -> None:
    segment = segment_of(golden, "rolled", 0)
    whole = Reading(golden, subscribe="rolled").rows()
    spoil(segment, 100, bytes([segment.read_bytes()[100] ^ 1]))
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position 0 .*checksum"):
        Reading(golden, subscribe="rolled").rows()
    found = Reading(golden, subscribe="rolled", mode="PERMISSIVE").rows()
    [damaged] = [row for row in found if row["_corrupt_record"]]
    assert (damaged["topic"], damaged["partition"], damaged["value"]) == ("rolled", 0, None)
    assert f"{segment} at position 0 " in damaged["_corrupt_record"]
    kept = [row for row in found if not row["_corrupt_record"]]
    assert 0 < len(whole) - len(kept) < 200
    assert kept == whole[len(whole) - len(kept) :]
    assert Reading(golden, subscribe="rolled", mode="dropMalformed").rows() == kept


def test_reading_continues_at_an_index_entry_after_an_invalid_header(golden: Path) -> None:
    segment = segment_of(golden, "rolled", 0)
    spoil(segment, 8, b"\xff\xff\xff\xff")
    found = Reading(golden, subscribe="rolled", mode="PERMISSIVE").rows()
    [damaged] = [row for row in found if row["_corrupt_record"]]
    assert "at position 0 " in damaged["_corrupt_record"]
    assert 19_000 < len(found) < 20_000
    assert found[-1]["offset"] == 19_999


def test_a_truncated_tail_below_the_high_watermark_is_reported(golden: Path) -> None:
    segment = segment_of(golden, "rolled")
    size = segment.stat().st_size
    os.truncate(segment, size - 10)
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position .*ends inside a batch"):
        Reading(golden, subscribe="rolled").rows()
    found = Reading(golden, subscribe="rolled", mode="PERMISSIVE").rows()
    assert [row["_corrupt_record"] is None for row in found[-2:]] == [True, False]


def test_a_file_truncated_between_batches_is_reported(golden: Path) -> None:
    os.truncate(segment_of(golden, "codec-none"), 0)
    with pytest.raises(CorruptRecordsError, match=r"codec-none-0/0+\.log .* below its high watermark 200"):
        Reading(golden, subscribe="codec-none").rows()


def test_a_foreign_file_is_reported(golden: Path) -> None:
    segment = segment_of(golden, "codec-none")
    segment.write_text("This is no segment, and was never one. " * 100)
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position 0 .*magic 110 is unknown"):
        Reading(golden, subscribe="codec-none").rows()


def test_missing_indexes_do_not_change_the_result(golden: Path) -> None:
    for pattern in ("*.index", "*.timeindex"):
        for index in (golden / "rolled-0").glob(pattern):
            index.unlink()
    before = sorted((golden / "rolled-0").iterdir())
    assert Reading(golden, subscribe="rolled", minPartitions="10").offsets() == list(range(20_000))
    assert sorted((golden / "rolled-0").iterdir()) == before


def test_a_batch_larger_than_a_chunk_is_read_whole(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    path = writing.path
    for count in (1, 1000, 2, 500):
        writing.append(count)
    writing.close()
    monkeypatch.setattr(segment_reader, "CHUNK_BYTES", 1000)
    assert Reading(path).offsets() == list(range(1503))


def test_an_unknown_option_is_reported() -> None:
    with pytest.raises(ValueError, match="'maxoffsetspertrigger' is not supported"):
        Reading(GOLDEN, maxOffsetsPerTrigger="1")
    with pytest.raises(ValueError, match="mode is 'LENIENT'"):
        Reading(GOLDEN, mode="LENIENT")
