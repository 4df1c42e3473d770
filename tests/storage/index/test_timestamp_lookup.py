"""Offsets by time: through the time index, within a batch, while segments come and go."""

from __future__ import annotations

import random

from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, append, batch, read_all


def test_offsets_by_timestamp_with_times_that_go_back(new_log: NewLog) -> None:
    log = new_log(segment_bytes=400, index_interval_bytes=0)
    times = [NOW + delta for delta in (10, 5, 30, 20, 20, 7, 50, 1, 40, 60)]
    for time in times:
        append(log, b"a" * 20, timestamp=time)
    for wanted in range(NOW, NOW + 61):
        first = next(index for index, time in enumerate(times) if time >= wanted)
        assert log.offset_for_timestamp(wanted) == (times[first], first, 0)
    assert log.offset_for_timestamp(NOW + 61) is None
    assert log.max_timestamp_offset() == (NOW + 60, 9, 0)


def test_offsets_by_timestamp_while_segments_come_and_go(new_log: NewLog) -> None:
    log = new_log(segment_bytes=2 * len(batch(b"0")))
    chance = random.Random(1)

    def search_everywhere() -> None:
        records = read_all(log)
        for wanted in range(NOW, NOW + 102):
            found = next((record for record in records if record.timestamp >= wanted), None)
            assert log.offset_for_timestamp(wanted) == (found and (found.timestamp, found.offset, 0))
        newest = max(records, key=lambda record: record.timestamp)
        assert log.max_timestamp_offset() == (newest.timestamp, newest.offset, 0)

    for step in range(30):
        append(log, b"0", timestamp=NOW + chance.randrange(100))
        log.advance_high_watermark(log.log_end_offset)
        if step % 7 == 6:
            log.truncate_to(log.log_end_offset - 2)
        if step % 10 == 9:
            oldest = log.segments.first
            log.update_log_start_offset(log.end_of_segment(oldest))
            search_everywhere()
            log.delete_segments([oldest])
        search_everywhere()


def test_offsets_by_timestamp_within_a_batch(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c", timestamp=NOW)
    append(log, b"d", timestamp=NOW)
    assert log.offset_for_timestamp(NOW + 1) == (NOW + 1, 1, 0)
    assert log.max_timestamp_offset() == (NOW + 2, 2, 0)


def test_offsets_by_timestamp_wherever_a_batch_begins_in_what_is_read_at_once(new_log: NewLog) -> None:
    overhead = len(batch(b"f" * 7000)) - 7000
    for before in (7900, 8000, 8100, 8130, 8131, 8132, 8192):  # of 8 KiB; 61 are a header
        log = new_log(index_interval_bytes=1 << 20)
        first = batch(b"f" * (before - overhead))
        assert len(first) == before
        append(log, b"f" * (before - overhead), timestamp=NOW)
        append(log, b"a" * 1500, b"b" * 1500, b"c", timestamp=NOW + 10)
        for number in range(3):
            assert log.offset_for_timestamp(NOW + 10 + number) == (NOW + 10 + number, 1 + number, 0)
        assert log.max_timestamp_offset() == (NOW + 12, 3, 0)


def test_offsets_by_timestamp_begin_at_the_log_start(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c", timestamp=NOW)
    log.advance_high_watermark(3)
    log.update_log_start_offset(2)
    assert log.offset_for_timestamp(NOW) == (NOW + 2, 2, 0)


def test_offsets_by_timestamp_for_every_start_of_the_log(new_log: NewLog) -> None:
    log = new_log(index_interval_bytes=0)
    times = [NOW + delta for delta in (10, 10, 10, 30, 20, 30, 31, 31, 25, 40)]
    for time in times:
        append(log, b"a" * 20, timestamp=time)
    log.advance_high_watermark(len(times))
    for start in range(len(times)):
        log.update_log_start_offset(start)
        for wanted in range(NOW, NOW + 42):
            first = next((index for index in range(start, len(times)) if times[index] >= wanted), None)
            assert log.offset_for_timestamp(wanted) == (None if first is None else (times[first], first, 0))


def test_no_timestamp_at_all(new_log: NewLog) -> None:
    log = new_log()
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None
    append(log, b"a", timestamp=-1)
    assert log.max_timestamp_offset() is None
