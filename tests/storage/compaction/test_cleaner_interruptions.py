"""Compaction of real logs: changes to the log meanwhile, damage and failing disks."""

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
    UncleanableLogError,
)
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.protocol.compression.codecs import Codec
from tests.storage.compaction.compacted import Compacted, fill, in_process
from tests.storage.logs import NOW, TOPIC_ID, append, batch, names_in

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
        assert old.next_offset() > 0  # its files remain, renamed, for readers that still hold it
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
    assert compacted.log.cleaned_offset == 0  # stored before the first swap
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
