"""A last segment that ends inside a batch: every whole batch before the cut is read, and the cut is reported.

Each cut is read with and without the index, the high watermark and the marker of a clean stop.
"""

from __future__ import annotations

import logging
import os
import random
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.storage.batch_scan import StoredBatch
from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.records.damage import CorruptRecordsError
from tests.effort import some
from tests.pipeline.klog.readings import Reading, lock_as_odradek, segments
from tests.storage.logs import NOW, TOPIC_ID, batch, open_log_dir

TINY = 15


class Written(NamedTuple):
    """A directory with the log `orders-0` of two segments; the positions of the batches in the last one."""

    path: Path
    segment: Path
    data: bytes
    first_offset: int
    batches: list[StoredBatch]
    indexed: int  # the position in the last entry of the index

    def readable(self, cut: int) -> list[int]:
        """The offsets of the records in front of a cut."""
        ends = [batch.last_offset + 1 for batch in self.batches if batch.position + batch.size <= cut]
        return list(range(ends[-1] if ends else self.first_offset))

    def is_whole(self, cut: int) -> bool:
        return cut in (0, *(batch.position + batch.size for batch in self.batches))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    path = tmp_path / "logs"
    config = LogConfig(segment_bytes=14_000, index_interval_bytes=300)
    log_dir = open_log_dir(path)
    log = log_dir.create_log("orders", 0, TOPIC_ID, config)
    for size in (10_000, 9000, *[2] * TINY):  # the second one begins the last segment
        values = [b"v" * size] * (1 if size > 2 else 1 + log.log_end_offset % 3)
        log.append_as_leader(batch(*values, timestamp=NOW + log.log_end_offset, key=None), 0, NOW)
    log.advance_high_watermark(log.log_end_offset)
    active = log.active_segment
    batches, first_offset, indexed = list(active.log.batches()), active.base_offset, active.indexes.offsets.last()
    assert len(log.segments) == 2
    log_dir.close()
    segment = segments(path)[-1]
    assert 8192 < indexed.position < len(segment.read_bytes())
    return Written(path, segment, segment.read_bytes(), first_offset, batches, indexed.position)


@pytest.mark.timeout(600)
def test_every_whole_batch_before_a_cut_is_read(written: Written, caplog: pytest.LogCaptureFixture) -> None:
    """Each of the last three batches is cut at every byte (in `make test-fast` every fifth), the others at some."""
    caplog.set_level(logging.CRITICAL)
    last_three = written.batches[-3].position
    cuts = [*random.Random(19).sample(range(last_three), 15), *range(last_three, len(written.data))]
    indexes = {path: path.read_bytes() for path in written.segment.parent.glob(f"{written.segment.stem}.*index")}
    marker, checkpoint = written.path / ".kafka_cleanshutdown", written.path / "replication-offset-checkpoint"
    contents = {marker: marker.read_bytes(), checkpoint: checkpoint.read_bytes()} | indexes
    for has_index, has_high_watermark, is_clean in product((True, False), repeat=3):
        wanted = {checkpoint: has_high_watermark, marker: is_clean} | dict.fromkeys(indexes, has_index)
        for path, is_there in wanted.items():
            if is_there:
                path.write_bytes(contents[path])
            else:
                path.unlink(missing_ok=True)
        for cut in some(cuts):
            written.segment.write_bytes(written.data[:cut])
            is_lost = not written.is_whole(cut) or has_high_watermark or (has_index and cut <= written.indexed)
            case = f"{cut=} {has_index=} {has_high_watermark=} {is_clean=}"
            check_cut(written, cut, case, is_lost=is_lost)


def check_cut(written: Written, cut: int, case: str, *, is_lost: bool) -> None:
    readable = written.readable(cut)[written.first_offset :]
    reading = Reading(written.path, startingOffsets=f'{{"orders":{{"0":{written.first_offset}}}}}')
    rows = list(reading.in_mode("PERMISSIVE"))
    damage = [text for _, text in rows if text is not None]
    assert [offset for offset, text in rows if text is None] == readable, case
    assert len(damage) == is_lost, case
    assert all(f"{written.segment} at position " in text for text in damage), case
    assert [offset for offset, _ in reading.in_mode("DROPMALFORMED")] == readable, case
    read = []
    with pytest.raises(CorruptRecordsError, match=f"{written.segment} at position") if is_lost else nullcontext():
        for offset, _ in reading.in_mode("FAILFAST"):
            read.append(offset)
    assert read == readable, case


def test_a_torn_tail_is_a_warning_and_an_error_but_not_while_a_broker_may_be_writing(
    written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    os.truncate(written.segment, len(written.data) - 5)
    (written.path / ".kafka_cleanshutdown").unlink()
    (written.path / "replication-offset-checkpoint").unlink()
    with lock_as_odradek(written.path):
        assert Reading(written.path).offsets() == written.readable(len(written.data) - 5)
    assert not caplog.records
    Reading(written.path, mode="DROPMALFORMED")
    (warning,) = caplog.records
    assert f"{written.segment} at position {written.batches[-1].position} " in warning.getMessage()


def test_a_torn_tail_above_the_high_watermark_is_left_to_the_broker(written: Written) -> None:
    (written.path / ".kafka_cleanshutdown").unlink()
    high_watermark = written.batches[-2].base_offset
    (written.path / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {high_watermark}\n")
    os.truncate(written.segment, len(written.data) - 5)
    with lock_as_odradek(written.path):
        assert Reading(written.path).offsets() == list(range(high_watermark))
    assert Reading(written.path).offsets() == written.readable(len(written.data) - 5)


def test_a_query_that_ends_before_the_cut_does_not_fail(written: Written) -> None:
    os.truncate(written.segment, len(written.data) - 5)
    end = written.batches[-1].base_offset - 1
    assert Reading(written.path, endingOffsets=f'{{"orders":{{"0":{end}}}}}').offsets() == list(range(end))


@pytest.mark.parametrize("has_index", [True, False])
def test_zeros_behind_the_last_batch_are_no_damage(written: Written, has_index: bool) -> None:
    """A broker that preallocates files leaves zeros there when it is killed."""
    if not has_index:
        written.segment.with_suffix(".index").unlink()
    os.truncate(written.segment, len(written.data) + 100_000)
    assert Reading(written.path).offsets() == written.readable(len(written.data))


def test_lost_batches_that_zeros_replaced_are_reported_below_the_high_watermark(written: Written) -> None:
    cut = written.batches[5].position + 8
    with written.segment.open("r+b") as file:
        file.seek(cut)
        file.write(bytes(len(written.data) - cut))
    rows = Reading(written.path, mode="PERMISSIVE").rows()
    assert [row["offset"] for row in rows[:-1]] == written.readable(cut)
    assert f"at position {written.batches[5].position} " in rows[-1]["_corrupt_record"]
