"""Append, read, roll, truncate one log without restarts (see test_log_dir, test_recovery, test_model)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.resources import LogResources
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import batch_headers
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, append, batch, follower_batch, names_in, read_all, records_in, values_of

HOUR = 3_600_000


def code_of(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


def base_offsets(log: Log) -> list[int]:
    return [int(name.removesuffix(".log")) for name in names_in(log.directory) if name.endswith(".log")]


# ------------------------------------------------------------------------------------------------------------ appending


def test_offsets_and_leader_epoch_are_assigned(new_log: NewLog) -> None:
    log = new_log()
    first = log.append_as_leader(batch(b"a", b"b"), 3, NOW)
    second = log.append_as_leader(batch(b"c"), 4, NOW)
    assert (first.base_offset, first.last_offset, first.records_count) == (0, 1, 2)
    assert (second.base_offset, second.last_offset, second.size_bytes) == (2, 2, len(batch(b"c")))
    assert (first.log_append_time, first.log_start_offset, first.duplicate) == (-1, 0, False)
    with log.read(0, 1000, 3) as data:
        headers = [header for _, header in batch_headers(data.read())]
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 3), (2, 4)]
    assert log.log_end_offset == 3
    assert log.latest_leader_epoch == 4


def test_the_brokers_time_is_returned(new_log: NewLog) -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    assert log.append_as_leader(batch(b"a", timestamp=5), 0, NOW + 9).log_append_time == NOW + 9
    assert read_all(log)[0].timestamp == NOW + 9


def test_a_rejected_batch_changes_nothing(new_log: NewLog) -> None:
    log = new_log(max_message_bytes=100)
    append(log, b"a")
    size = log.size_bytes
    with pytest.raises(KafkaError):
        append(log, b"x" * 200)
    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert append(log, b"b") == 1
    assert values_of(log) == [b"a", b"b"]


def test_a_new_configuration_applies_from_the_next_batch(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a" * 500)
    log.configure(LogConfig(max_message_bytes=100))
    with pytest.raises(KafkaError) as error:
        append(log, b"a" * 500)
    assert code_of(error) is ErrorCode.MESSAGE_TOO_LARGE


# -------------------------------------------------------------------------------------------------------------- reading


def test_a_read_starts_with_the_batch_that_holds_the_offset(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    append(log, b"d", b"e")
    with log.read(1, 1 << 20, 5) as data:
        assert [r.value for r in records_in(data.read())] == [b"a", b"b", b"c", b"d", b"e"]
    with log.read(4, 1 << 20, 5) as data:
        assert [r.value for r in records_in(data.read())] == [b"d", b"e"]


def test_a_read_stops_before_the_end_offset(new_log: NewLog) -> None:
    log = new_log()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    assert values_of(log, end=2) == [b"a", b"b"]
    with log.read(2, 1000, 2) as data:
        assert len(data) == 0
    with log.read(3, 1000, 2) as data:
        assert len(data) == 0


def test_max_bytes_never_cuts_the_first_batch(new_log: NewLog) -> None:
    log = new_log()
    size = len(batch(b"a"))
    for value in (b"a", b"b", b"c"):
        append(log, value)
    with log.read(0, size + 10, 3) as data:
        assert len(data) == size + 10
    with log.read(0, 10, 3) as data:
        assert len(data) == size
        assert [r.value for r in records_in(data.read())] == [b"a"]
    with log.read(0, size - 1, 3, minimum_one_batch=False) as data:
        assert len(data) == 0
    with log.read(0, size + 10, 3, minimum_one_batch=False) as data:
        assert len(data) == size + 10


def test_a_read_at_the_end_is_empty_and_beyond_it_fails(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b")
    with log.read(2, 1000, 2) as data:
        assert data.read() == b""
        with pytest.raises(ValueError, match="empty"):
            data.fileno()
    for offset in (-1, 3):
        with pytest.raises(KafkaError) as error:
            log.read(offset, 1000, 2)
        assert code_of(error) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_below_the_start_fails(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    log.advance_high_watermark(3)
    assert log.update_log_start_offset(2)
    assert not log.update_log_start_offset(1)
    with pytest.raises(KafkaError) as error:
        log.read(1, 1000, 3)
    assert code_of(error) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_of(log) == [b"c"]


def test_the_start_may_not_pass_the_high_watermark(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    log.advance_high_watermark(1)
    with pytest.raises(KafkaError) as error:
        log.update_log_start_offset(2)
    assert code_of(error) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_slice_outlives_its_segment(new_log: NewLog, resources: LogResources, tmp_path: Path) -> None:
    log = new_log(segment_bytes=100, file_delete_delay_ms=0)
    append(log, b"a")
    append(log, b"b")
    data = log.read(1, 1000, 2)
    log.truncate_to(0)
    resources.deletions.run_due()
    append(log, b"c")
    assert not list(tmp_path.rglob("*.deleted"))
    assert [r.value for r in records_in(data.read())] == [b"b"]
    data.release()
    data.release()
    with pytest.raises(ValueError, match="released"):
        data.fileno()


# -------------------------------------------------------------------------------------------------------------- rolling


def test_a_segment_is_named_after_the_first_offset_it_may_hold(new_log: NewLog) -> None:
    log = new_log(segment_bytes=3 * len(batch(b"a")))
    for _ in range(10):
        append(log, b"a")
    assert base_offsets(log) == [0, 3, 6, 9]
    assert log.segments_count == 4
    assert [r.offset for r in read_all(log)] == list(range(10))
    assert names_in(log.directory) == sorted(
        [f"{base:020d}.{kind}" for base in (0, 3, 6, 9) for kind in ("index", "log", "timeindex")]
        + [f"{base:020d}.snapshot" for base in (3, 6, 9)]
        + ["leader-epoch-checkpoint", "partition.metadata"]
    )


def test_a_segment_rolls_by_the_time_between_records(new_log: NewLog) -> None:
    log = new_log(segment_ms=1000)
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 1000)
    append(log, b"c", timestamp=NOW + 1001)
    append(log, b"d", timestamp=NOW + 1, now_ms=NOW + HOUR)
    assert base_offsets(log) == [0, 2]


def test_without_timestamps_a_segment_rolls_by_the_clock(new_log: NewLog, resources: LogResources) -> None:
    log = new_log(segment_ms=1000)
    append(log, b"a", timestamp=-1)
    append(log, b"b", timestamp=-1, now_ms=NOW + 1000)
    append(log, b"c", timestamp=-1, now_ms=NOW + 1001)
    assert base_offsets(log) == [0, 2]


def test_jitter_rolls_earlier(new_log: NewLog) -> None:
    log = new_log(segment_ms=1000, segment_jitter_ms=1000)
    jitter = log.active_segment.jitter_ms
    assert 0 < jitter < 1000
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 1000 - jitter)
    append(log, b"c", timestamp=NOW + 1001 - jitter)
    assert base_offsets(log) == [0, 2]


def test_a_compacted_log_rolls_after_max_compaction_lag_ms(new_log: NewLog) -> None:
    log = new_log(max_compaction_lag_ms=1000, cleanup_policy=frozenset({"compact"}))
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 1001)
    assert base_offsets(log) == [0, 1]


def test_a_full_index_rolls(new_log: NewLog) -> None:
    log = new_log(index_interval_bytes=0, segment_index_bytes=40)  # 5 offset entries, or 3 time entries, one reserved
    for index in range(8):
        append(log, b"a", timestamp=NOW + index)
    assert base_offsets(log) == [0, 3, 6]
    for _ in range(8):
        append(log, b"a", timestamp=NOW)  # no new time entries: now the offset index decides
    assert base_offsets(log) == [0, 3, 6, 12]


def test_an_offset_too_far_from_the_base_rolls(new_log: NewLog) -> None:
    log = new_log()
    far = 2**31 - 1
    for base in (0, far, far + 1):
        log.append_as_follower(bytearray(follower_batch(b"a", base_offset=base)))
    assert base_offsets(log) == [0, far + 1]
    assert [r.offset for r in read_all(log)] == [0, far, far + 1]


def test_an_index_without_room_for_an_entry_rolls_empty_segments(new_log: NewLog) -> None:
    log = new_log(index_interval_bytes=0, segment_index_bytes=12)
    for _ in range(4):
        append(log, b"a")
    assert values_of(log) == [b"a"] * 4


def test_roll_by_request(new_log: NewLog) -> None:
    log = new_log()
    log.roll()
    append(log, b"a")
    log.roll()
    log.roll()
    append(log, b"b")
    assert base_offsets(log) == [0, 1]
    assert values_of(log) == [b"a", b"b"]


def test_indexes_are_preallocated_and_cut_when_rolled(new_log: NewLog) -> None:
    log = new_log(index_interval_bytes=0, segment_index_bytes=1003)
    for index in range(3):
        append(log, b"a", timestamp=NOW + index)
    sizes = {path.suffix: path.stat().st_size for path in log.directory.glob("*.*index")}
    assert sizes == {".index": 1000, ".timeindex": 996}  # rounded down to whole entries
    log.roll()
    sizes = {path.suffix: path.stat().st_size for path in log.directory.glob(f"{0:020d}.*index")}
    assert sizes == {".index": 16, ".timeindex": 24}


def test_index_entries(new_log: NewLog) -> None:
    """One for the first batch after more than `index_interval_bytes`; of time one more when the segment is done."""
    log = new_log(index_interval_bytes=150)
    size = len(batch(b"a"))
    for index in range(7):
        append(log, b"a", timestamp=NOW + (index if index != 4 else -5))
    log.roll()
    offsets = (log.directory / f"{0:020d}.index").read_bytes()
    assert size == 70
    assert list(struct.iter_unpack(">ii", offsets)) == [(3, 3 * size), (6, 6 * size)]
    times = (log.directory / f"{0:020d}.timeindex").read_bytes()
    assert list(struct.iter_unpack(">qi", times)) == [(NOW + 3, 3), (NOW + 6, 6)]


def test_preallocated_segments_are_trimmed_to_their_batches(new_log: NewLog) -> None:
    log = new_log(preallocate=True, segment_bytes=10_000)
    path = log.directory / f"{0:020d}.log"
    append(log, b"a")
    assert path.stat().st_size == 10_000
    log.roll()
    assert path.stat().st_size == len(batch(b"a"))
    append(log, b"b")
    log.close()
    assert (log.directory / f"{1:020d}.log").stat().st_size == len(batch(b"a"))


# -------------------------------------------------------------------------------------------------------------- cutting


def test_truncation(new_log: NewLog) -> None:
    log = new_log(segment_bytes=3 * len(batch(b"0")), index_interval_bytes=0)
    for index in range(10):
        append(log, b"%d" % index, timestamp=NOW + index)
    log.advance_high_watermark(10)
    assert log.truncate_to(5)
    assert (log.log_end_offset, log.high_watermark) == (5, 5)
    assert base_offsets(log) == [0, 3]
    assert values_of(log) == [b"0", b"1", b"2", b"3", b"4"]
    assert log.max_timestamp_offset() == (NOW + 4, 4, 0)
    assert not log.truncate_to(5)
    assert not log.truncate_to(7)
    assert append(log, b"new") == 5
    assert values_of(log, start=3) == [b"3", b"4", b"new"]
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)


def test_truncation_into_a_batch_drops_all_of_it(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    log.truncate_to(2)
    assert log.log_end_offset == 1
    assert values_of(log) == [b"a"]


def test_positions_read_before_a_truncation_are_not_used_after_it(new_log: NewLog) -> None:
    log = new_log()
    for number in range(40):  # so many that what was read is not among the last batches
        append(log, b"%d" % number)
    assert values_of(log, start=3)[0] == b"3"
    log.truncate_to(2)
    append(log, b"a", b"b", b"c")
    assert values_of(log, start=3) == [b"b", b"c"]


def test_truncation_lowers_the_recovery_point(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    log.flush()
    assert log.recovery_point == 2
    log.truncate_to(1)
    assert log.recovery_point == 1


def test_truncate_fully_and_start_at(new_log: NewLog) -> None:
    log = new_log(segment_bytes=100)
    for _ in range(3):
        append(log, b"a", leader_epoch=3)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert (log.latest_leader_epoch, base_offsets(log)) == (-1, [100])
    assert append(log, b"b") == 100
    log.truncate_fully_and_start_at(100)
    assert append(log, b"c") == 100
    assert values_of(log) == [b"c"]


# ------------------------------------------------------------------------------------------------------------- flushing


def test_flush_raises_the_recovery_point(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    log.flush(1)
    assert log.recovery_point == 1
    log.flush()
    assert log.recovery_point == 2
    log.flush(1)
    assert log.recovery_point == 2


def test_flush_target_follows_the_configuration(new_log: NewLog, resources: LogResources) -> None:
    clock = resources.clock
    assert isinstance(clock, ManualClock)
    log = new_log(flush_messages=3, flush_ms=1000)
    assert log.flush_target() is None
    append(log, b"a")
    assert log.flush_target() is None
    append(log, b"b", b"c")
    assert log.flush_target() == 3
    log.flush()
    append(log, b"d")
    assert log.flush_target() is None
    clock.advance(1000)
    assert log.flush_target() == 4
    log.flush()
    clock.advance(1000)
    assert log.flush_target() is None


def test_a_rolled_segment_is_due_to_be_flushed(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    log.roll()
    append(log, b"b")
    assert log.flush_target() == 1
    log.flush(1)
    assert (log.flush_target(), log.recovery_point) == (None, 1)
