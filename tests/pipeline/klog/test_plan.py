"""The tasks of a query: pieces of segments, ranges of offsets and times, filters."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan

from odradek.broker.storage.offline.segment_files import FileIdentity
from odradek.pipeline.klog.plan import OffsetRangeError
from odradek.pipeline.klog.segment_ranges import SegmentRange
from odradek.pipeline.klog.tasks import KlogPiece, tasks_of
from tests.pipeline.klog.readings import GOLDEN, Reading
from tests.storage.logs import NOW


def test_a_large_segment_is_divided_between_tasks_at_index_entries() -> None:
    whole, pieces = Reading(GOLDEN, subscribe="rolled"), Reading(GOLDEN, subscribe="rolled", minPartitions="20")
    assert len(whole.tasks) < 10
    assert len(pieces.tasks) > 15
    assert pieces.bytes == whole.bytes
    assert len({piece.range.path for piece in pieces.pieces if piece.range}) == len(whole.pieces) == 2
    assert pieces.offsets() == whole.offsets()


def piece(size: int) -> KlogPiece:
    """A piece of a file that does not exist, so it has no index to cut it."""
    return KlogPiece("t", 0, 0, 100, SegmentRange("/nowhere/0.log", FileIdentity(0, 0), 0, size, 0, 100))


def test_every_processor_gets_a_task_if_the_log_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 20)
    large, small = [piece(32 << 20)] * 40, [piece(1 << 20)] * 40
    assert len(tasks_of(large, None, None)) == 20
    assert len(tasks_of(small, None, None)) == 2
    assert len(tasks_of(large, None, 256 << 20)) == 5
    assert len(tasks_of(large, 10, None)) == 10


def test_only_the_bytes_of_a_range_of_offsets_are_read() -> None:
    part = Reading(GOLDEN, subscribe="rolled", startingOffsets='{"rolled":{"0":9000}}',
                   endingOffsets='{"rolled":{"0":9010}}')  # fmt: skip
    assert part.offsets() == list(range(9000, 9010))
    assert part.bytes < Reading(GOLDEN, subscribe="rolled").bytes / 50


def test_filters_are_pushed_down_to_the_indexes() -> None:
    whole = Reading(GOLDEN, subscribe="rolled")
    young = datetime.fromtimestamp(whole.rows()[15_000]["timestamp"].timestamp(), UTC)
    by_offset = Reading(
        GOLDEN, [GreaterThanOrEqual(("offset",), 9000), LessThan(("offset",), 9010)], subscribe="rolled"
    )
    assert set(range(9000, 9010)) <= set(by_offset.offsets()) <= set(range(9000, 9011))
    assert by_offset.bytes < whole.bytes / 50
    by_time = Reading(GOLDEN, [GreaterThan(("timestamp",), young)], subscribe="rolled")
    assert {row["offset"] for row in whole.rows() if row["timestamp"] > young} <= set(by_time.offsets())
    assert by_time.bytes < whole.bytes / 3
    by_topic = Reading(GOLDEN, [In(("topic",), ("codec-lz4", "rolled")), EqualTo(("partition",), 0)])
    assert {piece.topic for piece in by_topic.pieces} == {"codec-lz4", "rolled"}
    assert Reading(GOLDEN, [EqualTo(("partition",), 1)]).tasks == []


def test_a_range_of_time_is_found_through_the_time_index() -> None:
    whole = Reading(GOLDEN, subscribe="rolled")
    rows = whole.rows()
    start, end = (round(rows[number]["timestamp"].timestamp() * 1000) for number in (5000, 5100))
    part = Reading(GOLDEN, subscribe="rolled", startingTimestamp=str(start), endingTimestamp=str(end))
    first = next(row["offset"] for row in rows if row["timestamp"].timestamp() * 1000 >= start)
    last = next(row["offset"] for row in rows if row["timestamp"].timestamp() * 1000 >= end)
    assert part.offsets() == list(range(first, last))
    assert part.bytes < whole.bytes / 20


def test_a_time_after_the_last_record_is_an_error_or_the_end() -> None:
    late = str(NOW * 2)
    with pytest.raises(OffsetRangeError, match="rolled-0 has no record as late as"):
        Reading(GOLDEN, subscribe="rolled", startingTimestamp=late)
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert Reading(GOLDEN, subscribe="rolled", startingTimestamp=late, **strategy).tasks == []
    assert len(Reading(GOLDEN, subscribe="rolled", endingTimestamp=late).offsets()) == 20_000


def test_missing_offsets_are_an_error_unless_fail_on_data_loss_is_false() -> None:
    asked = {"subscribe": "rolled", "endingOffsets": '{"rolled":{"0":20001}}'}
    with pytest.raises(OffsetRangeError, match="offset 20001 of rolled-0"):
        Reading(GOLDEN, **asked)
    assert len(Reading(GOLDEN, failOnDataLoss="false", **asked).offsets()) == 20_000
