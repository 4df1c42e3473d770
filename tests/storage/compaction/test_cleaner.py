"""Compaction of real logs: what it keeps, what it does not touch, and interruptions."""

from __future__ import annotations

import errno
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from msgspec.structs import replace

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import (
    Answers,
    Clean,
    CleanerNotStartedError,
    CleanerSettings,
    UncleanableLogError,
)
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.broker.storage.log_config import LogConfig
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import TimestampType
from tests.storage.compaction.compacted import COMPACT, Compacted, fill, in_process
from tests.storage.logs import NOW, TOPIC_ID, append, batch, marker, names_in, read_all

DAY = 86_400_000


# ------------------------------------------------------------------------------------------------------ what is left


def test_the_last_value_of_every_key_keeps_its_offset(compacted: Compacted) -> None:
    for index in range(40):
        compacted.put(b"k%d" % (index % 3), b"%d" % index)
    compacted.roll()
    assert compacted.compact()
    assert compacted.left() == [(37, b"k1", b"37"), (38, b"k2", b"38"), (39, b"k0", b"39")]
    assert compacted.put(b"k0", b"on") == 40


def test_the_active_segment_is_not_touched(compacted: Compacted) -> None:
    for index in range(4):
        compacted.put(b"k", b"%d" % index)
    compacted.log.advance_high_watermark(4)
    assert not compacted.compact()
    assert len(compacted.left()) == 4


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_place_codec_and_sequences(compacted: Compacted, codec: Codec) -> None:
    data = batch(b"a", b"b", b"c", key=b"1", codec=codec, producer_id=7, producer_epoch=2, base_sequence=40)
    compacted.log.append_as_leader(data, 3, NOW)
    compacted.put(b"2", b"later")
    compacted.roll()
    compacted.compact()
    [stored, _] = [header for _, header in compacted.log.segments.first.log.headers()]
    assert (stored.base_offset, stored.last_offset, stored.records_count, stored.codec) == (0, 2, 1, codec)
    assert (stored.producer_id, stored.producer_epoch, stored.base_sequence) == (7, 2, 40)
    assert (stored.partition_leader_epoch, stored.max_timestamp) == (3, NOW + 2)
    assert compacted.left() == [(2, b"1", b"c"), (3, b"2", b"later")]


def test_headers_and_timestamps_stay(compacted: Compacted) -> None:
    builder = BatchBuilder()
    builder.append(NOW + 5, b"k", b"old")
    builder.append(NOW - 7, b"j", b"v", [("h", b"1"), ("n", None)])
    compacted.log.append_as_leader(memoryview(builder.build()), 0, NOW)
    compacted.put(b"k", b"new")
    compacted.roll()
    compacted.compact()
    first = read_all(compacted.log)[0]
    assert (first.offset, first.timestamp, first.value) == (1, NOW - 7, b"v")
    assert first.headers == [("h", b"1"), ("n", None)]


def test_log_append_time_stays(tmp_path: Path) -> None:
    compacted = Compacted(tmp_path, replace(COMPACT, message_timestamp_type="LogAppendTime"))
    compacted.put(b"k", b"a", b"b")
    compacted.put(b"j", b"c")
    compacted.roll()
    compacted.compact()
    [header, _] = [header for _, header in compacted.log.segments.first.log.headers()]
    assert (header.timestamp_type, header.records_count) == (TimestampType.LOG_APPEND_TIME, 1)
    assert [record.timestamp for record in read_all(compacted.log)] == [NOW, NOW]
    compacted.log_dir.close()


def test_records_without_a_key_are_removed(compacted: Compacted) -> None:
    plain = LogConfig(segment_bytes=500)
    compacted.log.configure(plain)
    compacted.log.append_as_leader(batch(b"v", key=None), 0, NOW)
    compacted.log.configure(compacted.config)
    compacted.put(b"k", b"v")
    compacted.roll()
    compacted.compact()
    assert compacted.left() == [(1, b"k", b"v")]
    assert compacted.cleaner.report.last.invalid_records == 1


def test_compacted_segments_are_not_dirty_again(compacted: Compacted) -> None:
    for index in range(30):
        compacted.put(b"k%d" % (index % 3), b"%d" % index)
    compacted.roll()
    assert compacted.compact()
    assert not compacted.compact()
    compacted.reopen()
    assert compacted.log.cleaned_offset == 30
    assert not compacted.compact()
    compacted.put(b"k0", b"new")
    compacted.roll()
    assert compacted.compact()
    assert compacted.cleaner.report.last.indexed_records == 1
    assert [value for _, _, value in compacted.left()] == [b"28", b"29", b"new"]


def test_keys_that_do_not_fit_are_left_to_the_next_round(compacted: Compacted) -> None:
    for index in range(60):
        compacted.put(b"k%d" % (index % 30), b"%d" % index)
    compacted.roll()
    tiny = CleanerSettings(buffer_bytes=24 * 10, load_factor=0.9)
    rounds = 0
    while compacted.compact(settings=tiny):
        rounds += 1
    assert rounds > 3
    assert [value for _, _, value in compacted.left()] == [b"%d" % index for index in range(30, 60)]


def test_small_segments_are_joined_and_none_is_larger_than_segment_bytes(compacted: Compacted) -> None:
    for index in range(100):
        compacted.put(b"k%d" % (index % 40), b"%d" % index)
    compacted.roll()
    before = compacted.log.segments_count
    compacted.compact()
    compacted.put(b"k0", b"x")
    compacted.roll()
    compacted.compact()
    assert compacted.log.segments_count < before
    assert all(segment.size <= 500 for segment in compacted.log.segments)


# ---------------------------------------------------------------------------------------------------------- tombstones


def test_a_tombstone_stays_delete_retention_ms_from_the_round_that_first_met_it(compacted: Compacted) -> None:
    compacted.put(b"k", b"v")
    compacted.put(b"k", None)
    compacted.roll()
    compacted.compact()
    assert compacted.left() == [(1, b"k", None)]
    [header] = [header for _, header in compacted.log.segments.first.log.headers()]
    assert header.delete_horizon_ms == NOW + DAY
    assert read_all(compacted.log)[0].timestamp == NOW

    for advance, is_left in ((DAY - 1, True), (1, False)):
        compacted.clock.advance(advance)
        compacted.put(b"other", b"v")
        compacted.roll()
        assert compacted.compact()
        assert ((1, b"k", None) in compacted.left()) == is_left


# -------------------------------------------------------------------------------------------------------- transactions


def transactional(compacted: Compacted, sequence: int, key: bytes, value: bytes) -> None:
    compacted.put(key, value, producer_id=9, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def end(compacted: Compacted, *, commit: bool) -> None:
    compacted.log.append_as_leader(marker(9, 0, commit=commit), 0, NOW, from_client=False)


def test_records_of_an_aborted_transaction_are_removed_and_supersede_nothing(compacted: Compacted) -> None:
    compacted.put(b"k", b"before")
    transactional(compacted, 0, b"k", b"aborted")
    end(compacted, commit=False)
    transactional(compacted, 1, b"j", b"committed")
    end(compacted, commit=True)
    compacted.roll()
    assert compacted.compact()
    assert compacted.left() == [(0, b"k", b"before"), (3, b"j", b"committed")]
    assert compacted.log.aborted_transactions(0, 5) == [(9, 1)]  # its marker is still there, so readers must know


def test_an_open_transaction_is_not_touched(compacted: Compacted) -> None:
    compacted.put(b"k", b"1")
    compacted.roll()
    transactional(compacted, 0, b"k", b"2")
    compacted.put(b"k", b"3")
    compacted.roll()
    assert compacted.compact()
    assert [value for _, _, value in compacted.left()] == [b"1", b"2", b"3"]
    assert compacted.log.cleaned_offset == 1


def test_markers_are_removed_after_their_records_and_the_delete_horizon(compacted: Compacted) -> None:
    transactional(compacted, 0, b"k", b"aborted")
    end(compacted, commit=False)
    for sequence in (1, 2):
        transactional(compacted, sequence, b"k", b"committed")
        end(compacted, commit=True)
    compacted.put(b"k", b"last")
    for _ in range(4):
        compacted.roll()
        compacted.compact()
        compacted.clock.advance(DAY)
        compacted.put(b"k", b"last")
    # The last batch of data keeps the producer's sequence, without records, and so its marker; the others are gone.
    assert [(base, count) for base, _, count in compacted.shape() if base < 6] == [(4, 0), (5, 1)]
    assert compacted.log.aborted_transactions(0, 5) == []


def test_the_last_batch_of_a_producer_is_kept_empty(compacted: Compacted) -> None:
    compacted.put(b"k", b"1", producer_id=5, producer_epoch=0, base_sequence=0)
    compacted.put(b"k", b"2", producer_id=5, producer_epoch=0, base_sequence=1)
    compacted.put(b"k", b"3")
    compacted.roll()
    compacted.compact()
    assert compacted.shape() == [(1, 1, 0), (2, 2, 1)]
    compacted.reopen()
    data = batch(b"2", key=b"k", producer_id=5, producer_epoch=0, base_sequence=1)
    assert compacted.log.append_as_leader(data, 0, NOW).duplicate


# --------------------------------------------------------------------------------------------------- what comes between


def during(compacted: Compacted, change: Callable[[], object]) -> Clean:
    """Compaction, with something else after the first group was written."""
    clean = in_process(compacted.resources)

    def cleaning(job: CleaningJob, state: CleaningState) -> Answers:
        for number, answer in enumerate(clean(job, state)):
            if not number:
                change()
            yield answer

    return cleaning


def compact_until_aborted_by(compacted: Compacted, change: Callable[[], object]) -> bool:
    """Compact, and after the first group was written begin something in another thread that aborts it."""
    clean = in_process(compacted.resources)
    changes: list[Future[object]] = []

    def cleaning(job: CleaningJob, state: CleaningState) -> Answers:
        is_aborted = Event()
        state.when_aborted(is_aborted.set)
        for answer in clean(job, state):
            if not changes:
                changes.append(thread.submit(change))
                assert is_aborted.wait(30)
                assert not changes[0].done()  # it waits for the end
            yield answer

    with ThreadPoolExecutor(1) as thread:
        has_compacted = compacted.compact(cleaning)
        changes[0].result()
    return has_compacted


def test_readers_find_every_record_while_segments_are_swapped(compacted: Compacted) -> None:
    fill(compacted)
    log = compacted.log
    with log.read(0, 10_000, 60) as data:
        before = data.read()
        old = log.segments.first
        assert compacted.compact()
        assert data.read() == before
        assert old.next_offset() > 0  # its files are there, renamed, for whoever still holds it
        assert log.aborted_transactions_of(0, data) == []


def test_a_topic_that_is_deleted_meanwhile_ends_the_round(compacted: Compacted) -> None:
    fill(compacted)
    assert not compact_until_aborted_by(compacted, lambda: compacted.log_dir.delete_log("t", 0))
    assert compacted.log_dir.failure.error is None
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)


def test_a_log_truncated_during_a_round_stays_truncated(compacted: Compacted) -> None:
    fill(compacted)
    assert not compact_until_aborted_by(compacted, lambda: compacted.log.truncate_fully_and_start_at(100))
    assert compacted.left() == []
    assert not [name for name in names_in(compacted.log.directory) if "cleaned" in name or "swap" in name]


def test_a_log_truncated_inside_a_segment_during_a_round_stays_truncated(compacted: Compacted) -> None:
    for index in range(60):
        compacted.put(b"k%d" % index, b"%d" % index)
    compacted.roll()
    before = compacted.left()
    assert not compact_until_aborted_by(compacted, lambda: compacted.log.truncate_to(20))
    end = compacted.log.log_end_offset
    assert end <= 20
    assert compacted.left() == before[:end]
    assert compacted.put(b"k", b"on") == end


def test_a_round_stops_when_its_topic_is_no_longer_compacted(compacted: Compacted) -> None:
    fill(compacted)
    before = compacted.left()
    delete = replace(compacted.config, cleanup_policy=frozenset({"delete"}), retention_ms=-1)
    assert not compacted.compact(during(compacted, lambda: compacted.log.configure(delete)))
    assert compacted.left() == before
    assert compacted.log.cleaned_offset is None
    compacted.log.configure(compacted.config)
    assert compacted.compact()


def test_a_topic_that_is_no_longer_compacted_is_not_changed(
    compacted: Compacted, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(compacted)
    before = compacted.left()

    def reconfiguring() -> int:  # as a request may, just when the cleaner looks at the age of the log
        compacted.log.configure(replace(compacted.config, cleanup_policy=frozenset({"delete"}), retention_ms=-1))
        return NOW

    monkeypatch.setattr(compacted.clock, "time_ms", reconfiguring)
    assert not compacted.compact()
    assert compacted.left() == before
    assert not compacted.log.cleaning.is_in_progress


def test_a_log_whose_start_moves_up_meanwhile_is_compacted_and_starts_there(compacted: Compacted) -> None:
    fill(compacted)
    assert compacted.compact(during(compacted, lambda: compacted.log.update_log_start_offset(58)))
    assert [offset for offset, _, _ in compacted.left()] == [58, 59]
    compacted.log.delete_segments(compacted.log.segments_to_delete())
    compacted.reopen()
    assert [offset for offset, _, _ in compacted.left()] == [58, 59]


def test_a_log_that_retention_works_on_is_skipped(compacted: Compacted) -> None:
    fill(compacted)
    assert compacted.log.cleaning.begin()
    assert not compacted.compact()
    compacted.log.cleaning.end()
    assert compacted.compact()
    assert not compacted.log.cleaning.is_in_progress


def test_a_job_removes_the_files_of_an_interrupted_one(compacted: Compacted) -> None:
    fill(compacted)
    stale = compacted.log.directory / f"{1:020d}.log.cleaned"
    stale.write_bytes(b"half a ba")
    seen: list[bool] = []
    assert compacted.compact(during(compacted, lambda: seen.append(stale.exists())))
    assert seen == [False]


def test_a_changed_or_missing_cleaned_segment_is_not_swapped_in(
    compacted: Compacted,
) -> None:
    fill(compacted)
    before = compacted.left()

    def change(how: Callable[[Path], object]) -> None:
        for path in compacted.log.directory.glob("*.log.cleaned"):
            how(path)

    assert not compacted.compact(during(compacted, lambda: change(lambda path: path.write_bytes(b"half a ba"))))
    assert not compacted.compact(during(compacted, lambda: change(Path.unlink)))
    assert compacted.left() == before
    assert compacted.compact()


def test_a_log_with_a_missing_file_is_retried_after_the_others(compacted: Compacted) -> None:
    fill(compacted)
    other = compacted.log_dir.create_log("other", 0, TOPIC_ID, compacted.config)
    path = Path(compacted.log.segments.first.log.path)
    away = path.rename(path.with_suffix(".away"))
    compacted.resources.descriptors.close()
    assert not compacted.compact()
    assert compacted.log_dir.failure.error is None
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)

    append(other, b"v")
    other.roll()
    other.advance_high_watermark(1)
    assert compacted.compact()
    assert (other.cleaned_offset, compacted.log.cleaned_offset) == (1, None)

    away.rename(path)
    assert compacted.compact()
    assert [value for _, _, value in compacted.left()] == [b"56", b"57", b"58", b"59"]


def test_a_log_deleted_while_its_age_is_read_is_not_uncleanable(
    compacted: Compacted, caplog: pytest.LogCaptureFixture
) -> None:
    compacted.put(b"k", b"v", timestamp=-1)
    compacted.roll()
    compacted.log.configure(replace(compacted.config, min_compaction_lag_ms=1))
    compacted.log_dir.delete_log("t", 0)
    compacted.log_dir.logs["t", 0] = compacted.log  # as a list of them that was made before
    assert not compacted.compact()
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)
    assert compacted.log_dir.failure.error is None
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    del compacted.log_dir.logs["t", 0]


def test_appends_go_on_meanwhile(compacted: Compacted) -> None:
    fill(compacted)
    assert compacted.compact(during(compacted, lambda: compacted.put(b"k0", b"new")))
    assert compacted.left()[-1] == (60, b"k0", b"new")


def test_a_damaged_log_is_uncleanable_and_the_others_are_compacted(compacted: Compacted) -> None:
    fill(compacted)
    path = compacted.log.segments.first.log.path
    other = compacted.log_dir.create_log("other", 0, TOPIC_ID, compacted.config)
    for index in range(10):
        append(other, b"%d" % index)
    other.roll()
    other.advance_high_watermark(10)
    with Path(path).open("r+b") as file:
        file.seek(100)
        file.write(b"\xff\xff")
    size = compacted.log.size_bytes
    results = [compacted.compact() for _ in range(3)]
    assert results.count(True) == 1
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (1, size)
    assert other.cleaned_offset == 10
    assert not [name for name in names_in(compacted.log.directory) if "cleaned" in name]


def test_a_log_with_a_batch_that_expands_too_far_is_uncleanable(compacted: Compacted) -> None:
    bomb = batch(bytes(128 << 20), codec=Codec.ZSTD)
    assert len(bomb) < 64 * 1024
    compacted.log.append_as_follower(bomb)
    fill(compacted)
    other = compacted.log_dir.create_log("other", 0, TOPIC_ID, compacted.config)
    for index in range(10):
        append(other, b"%d" % index)
    other.roll()
    other.advance_high_watermark(10)
    results = [compacted.compact() for _ in range(3)]
    assert results.count(True) == 1
    assert compacted.cleaner.uncleanable(compacted.log_dir)[0] == 1
    assert other.cleaned_offset == 10


def test_an_unexpected_error_makes_a_log_uncleanable_not_the_directory_offline(compacted: Compacted) -> None:
    fill(compacted)

    def clean(_: CleaningJob, __: CleaningState) -> Answers:
        raise UncleanableLogError("no idea")

    assert not compacted.compact(clean)
    assert compacted.log_dir.failure.error is None
    assert compacted.cleaner.uncleanable(compacted.log_dir)[0] == 1


def test_a_disk_error_during_compaction_takes_the_directory_offline(compacted: Compacted) -> None:
    fill(compacted)

    def clean(_: CleaningJob, __: CleaningState) -> Answers:
        raise OSError(28, "No space left on device")

    assert not compacted.compact(clean)
    assert compacted.log_dir.failure.error is not None


@pytest.mark.parametrize("error", [OSError(errno.ENOMEM, "no memory"), CleanerNotStartedError("no process")])
def test_a_transient_error_during_compaction_is_retried(compacted: Compacted, error: Exception) -> None:
    fill(compacted)

    def clean(_: CleaningJob, __: CleaningState) -> Answers:
        (compacted.log.directory / "00000000000000000000.log.cleaned").write_bytes(b"")
        raise error

    for _ in range(4):
        assert not compacted.compact(clean)
    assert compacted.log_dir.failure.error is None
    assert compacted.cleaner.uncleanable(compacted.log_dir)[0] == 0
    assert not list(compacted.log.directory.glob("*.cleaned"))
    assert compacted.compact()


def test_the_dirtiest_log_goes_first(compacted: Compacted) -> None:
    fill(compacted)
    compacted.compact()
    dirty = compacted.log_dir.create_log("dirty", 0, TOPIC_ID, compacted.config)
    for log in (compacted.log, dirty):
        append(log, b"v")
        log.roll()
        log.advance_high_watermark(log.log_end_offset)
    assert compacted.compact()
    assert (dirty.cleaned_offset, compacted.log.cleaned_offset) == (1, 60)


def test_a_new_topic_does_not_inherit_the_cleaned_offset_of_its_name(compacted: Compacted) -> None:
    fill(compacted)
    compacted.compact()
    compacted.log_dir.delete_log("t", 0)
    compacted.log = compacted.log_dir.create_log("t", 0, bytes(16), compacted.config)
    compacted.reopen()
    assert compacted.log.cleaned_offset is None
