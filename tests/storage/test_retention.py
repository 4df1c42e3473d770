"""The segments that retention deletes, and the log afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.retention import segments_to_delete
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, append, names_in, open_log_dir, values_of

HOUR = 3_600_000


class Old(NamedTuple):
    """A segment whose last record was written `hours` ago."""

    base_offset: int
    hours: float
    size: int = 100

    def retention_timestamp(self) -> int:
        return NOW - int(self.hours * HOUR)


SEGMENTS = [Old(0, 9), Old(10, 7), Old(20, 3), Old(30, 1)]


def bases(
    segments: list[Old] = SEGMENTS, *, start: int = 0, high_watermark: int = 40, end: int = 40, **config: object
) -> list[int]:
    found = segments_to_delete(
        segments,
        LogConfig(**{"retention_ms": -1, **config}),
        log_start_offset=start,
        high_watermark=high_watermark,
        log_end_offset=end,
        now_ms=NOW,
    )
    return [segment.base_offset for segment in found]


def test_nothing_expires_without_limits() -> None:
    assert bases() == []


@pytest.mark.parametrize(
    ("hours", "gone"), [(10, []), (9, []), (8, [0]), (2, [0, 10, 20]), (0.5, [0, 10, 20, 30])]
)  # fmt: skip
def test_segments_expire_with_their_newest_record(hours: float, gone: list[int]) -> None:
    assert bases(retention_ms=int(hours * HOUR)) == gone


def test_an_older_segment_behind_a_newer_one_stays() -> None:
    assert bases([Old(0, 1), Old(10, 7)], retention_ms=2 * HOUR) == []


@pytest.mark.parametrize(("size", "gone"), [(400, []), (301, []), (300, [0]), (150, [0, 10]), (0, [0, 10, 20, 30])])
def test_segments_expire_while_the_rest_has_retention_bytes(size: int, gone: list[int]) -> None:
    assert bases(retention_bytes=size) == gone


@pytest.mark.parametrize("policy", ["delete", "compact", "delete,compact", ""])
@pytest.mark.parametrize(("start", "gone"), [(0, []), (9, []), (10, [0]), (29, [0, 10]), (40, [0, 10, 20])])
def test_segments_below_the_start_of_the_log_expire_under_any_policy(start: int, gone: list[int], policy: str) -> None:
    assert bases(start=start, cleanup_policy=frozenset(filter(None, policy.split(",")))) == gone


def test_a_rule_continues_where_the_one_before_stopped() -> None:
    # 100 bytes go with the start of the log, so size asks for one segment more, and age for the third.
    assert bases(start=10, retention_bytes=200, retention_ms=2 * HOUR) == [0, 10, 20]


@pytest.mark.parametrize("policy", ["compact", ""])
def test_age_and_size_count_only_where_the_policy_says_delete(policy: str) -> None:
    config = {"cleanup_policy": frozenset(filter(None, [policy])), "retention_ms": 1, "retention_bytes": 1}
    assert bases(**config) == []


@pytest.mark.parametrize(("high_watermark", "gone"), [(0, []), (10, [0]), (19, [0]), (39, [0, 10, 20])])
def test_segments_that_reach_the_high_watermark_stay(high_watermark: int, gone: list[int]) -> None:
    assert bases(high_watermark=high_watermark, retention_ms=0) == gone


def test_an_empty_active_segment_stays() -> None:
    assert bases([Old(0, 9), Old(10, 9, size=0)], high_watermark=10, end=10, retention_ms=0) == [0]


# ----------------------------------------------------------------------------------------------------------- the log


def filled(new_log: NewLog, **config: object) -> Log:
    """Five segments of one record each, from offset 0 on, an hour apart, the newest of now."""
    log = new_log(segment_bytes=100, **config)
    for index in range(5):
        append(log, b"%d" % index, timestamp=NOW - (4 - index) * HOUR)
    log.advance_high_watermark(5)
    return log


def expire(log: Log) -> None:
    segments = log.segments_to_delete()
    log.update_log_start_offset(log.end_of_segment(segments[-1]))
    log.delete_segments(segments)


def test_the_age_of_a_segment_is_that_of_its_newest_record(new_log: NewLog) -> None:
    log = filled(new_log, retention_ms=3 * HOUR - 1)
    expire(log)
    assert (log.log_start_offset, values_of(log)) == (2, [b"2", b"3", b"4"])
    assert log.segments_to_delete() == []


def test_a_segment_without_timestamps_is_as_old_as_its_file(new_log: NewLog) -> None:
    log = new_log(segment_bytes=100, retention_ms=HOUR)
    for _ in range(3):
        append(log, b"v", timestamp=-1)
    log.advance_high_watermark(3)
    first, second, _ = sorted(path for path in log.directory.glob("*.log"))
    os.utime(first, (NOW / 1000 - 3601, NOW / 1000 - 3601))
    os.utime(second, (NOW / 1000 - 3599, NOW / 1000 - 3599))
    assert [segment.base_offset for segment in log.segments_to_delete()] == [0]


def test_records_of_timestamp_zero_have_expired_as_in_kafka(new_log: NewLog) -> None:
    log = new_log(segment_bytes=100, retention_ms=HOUR)
    for _ in range(3):
        append(log, b"v", timestamp=0)
    log.advance_high_watermark(3)
    for path in log.directory.glob("*.log"):
        os.utime(path, (NOW / 1000, NOW / 1000))
    assert [segment.base_offset for segment in log.segments_to_delete()] == [0, 1, 2]


def test_files_of_expired_segments_are_removed_after_the_delay(new_log: NewLog, resources: LogResources) -> None:
    log = filled(new_log, retention_ms=HOUR, file_delete_delay_ms=0)
    expire(log)
    waiting = [name for name in names_in(log.directory) if name.endswith(".deleted")]
    assert [name for name in waiting if ".log" in name] == [f"{base:020d}.log.deleted" for base in range(3)]
    assert f"{1:020d}.snapshot.deleted" in waiting
    resources.deletions.run_due()
    assert [name for name in names_in(log.directory) if name.endswith(".deleted")] == []


def test_a_slice_and_a_segment_that_were_taken_before_can_be_read_after(new_log: NewLog) -> None:
    log = filled(new_log, retention_ms=HOUR)
    segment = log.segments_to_delete()[0]
    with log.read(0, 1000, 5) as data:
        before = data.read()
        expire(log)
        assert data.read() == before
    assert segment.next_offset() == 1


def test_reading_below_the_new_start_is_out_of_range(new_log: NewLog) -> None:
    log = filled(new_log, retention_ms=HOUR)
    expire(log)
    with pytest.raises(KafkaError) as caught:
        log.read(2, 1000, 5)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_only_what_lies_below_the_start_of_the_log_can_be_deleted(new_log: NewLog) -> None:
    log = filled(new_log)
    everything = log.segments.from_offset(0)
    log.update_log_start_offset(3)
    log.delete_segments(everything)
    log.delete_segments(everything)
    assert [segment.base_offset for segment in log.segments] == [3, 4]


def test_the_start_of_the_log_stays_where_retention_put_it_when_the_files_come_back(tmp_path: Path) -> None:
    """A power cut may undo the renames, but not the checkpoint before them."""
    config = LogConfig(segment_bytes=100, retention_ms=HOUR)
    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.create_log("t", 0, bytes(16), config)
    for index in range(5):
        append(log, b"%d" % index, timestamp=NOW - (4 - index) * HOUR)
    log.advance_high_watermark(5)
    segments = log.segments_to_delete()
    log.update_log_start_offset(log.end_of_segment(segments[-1]))
    log_dir.checkpoint_log_start_offsets()
    log_dir.close(clean=False)

    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.logs["t", 0]
    assert (log.log_start_offset, log.first_base_offset) == (3, 0)
    log.advance_high_watermark(5)
    expire(log)
    assert (log.log_start_offset, log.first_base_offset, values_of(log)) == (3, 3, [b"3", b"4"])
    log_dir.close()


def test_reading_a_log_that_is_deleted_does_not_take_the_directory_offline(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=100, retention_ms=HOUR)
    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.create_log("t", 0, bytes(16), config)
    for index in range(3):
        append(log, b"%d" % index, timestamp=NOW - 2 * HOUR)
    log.advance_high_watermark(3)
    segments = log.segments_to_delete()
    log_dir.delete_log("t", 0)

    assert not log.update_log_start_offset(3)
    log.delete_segments(segments)
    assert not log.swap_in(segments[:1], {".log": 0})
    with pytest.raises(KafkaError) as caught:
        log.offset_for_timestamp(1)
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert log_dir.failure.error is None
    log_dir.close()
