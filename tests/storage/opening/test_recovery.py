"""Opening a log after an unclean stop: every sound batch up to the first damage is kept."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path

import msgspec
import pytest

from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.checkpoints.metadata_revision import SeenMetadata, write_metadata_revision
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.testing.clock import ManualClock
from tests.storage.logs import (
    NODE,
    NOW,
    TOPIC_ID,
    append,
    batch,
    follower_batch,
    make_log_dir,
    marker,
    open_log_dir,
    read_all,
    values_of,
)
from tests.storage.opening.filled_logs import (
    CONFIG,
    COUNT,
    assert_works_on,
    fill,
    numbered,
    reopened,
    segment_files,
)


@pytest.mark.parametrize("flushed", [0, 5, 13, COUNT])
def test_nothing_is_lost_when_the_process_is_killed(tmp_path: Path, flushed: int) -> None:
    values = fill(tmp_path, flushed=flushed)
    log_dir, log = reopened(tmp_path)
    assert log.recovery_point == flushed
    assert_works_on(log, values)
    log_dir.close()
    log_dir, log = reopened(tmp_path)
    assert values_of(log) == [*values, b"more"]
    log_dir.close()


def assert_the_last_five_are_known(log: Log) -> None:
    """A client that lost the answers to its last five requests sends them again, the oldest first."""
    for index in range(COUNT - 5, COUNT):
        again = log.append_as_leader(numbered(index), 2, NOW)
        assert (again.duplicate, again.base_offset) == (True, index)
    assert log.log_end_offset == COUNT


@pytest.mark.parametrize("flushed", [0, 13, 14, 17, COUNT])
@pytest.mark.parametrize("in_segment", [7, 6, 1, 1000])
def test_recovery_finds_the_last_five_batches_of_a_producer(tmp_path: Path, in_segment: int, flushed: int) -> None:
    """Whatever segments they are in: snapshots between segments know the last batch of a producer only."""
    config = LogConfig(segment_bytes=len(numbered(10)) * in_segment, index_interval_bytes=100)
    values = fill(tmp_path, flushed=flushed, config=config)
    log_dir, log = reopened(tmp_path, config)
    assert_the_last_five_are_known(log)
    assert_works_on(log, values)
    log_dir.close()


def test_recovery_reads_batches_of_producers_before_the_recovered_segment(tmp_path: Path) -> None:
    """The last batches of each lie far apart in the segments below the recovery point."""
    config = LogConfig(segment_bytes=1 << 20)
    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    value = bytes(2000)
    for index in range(6):
        for producer in range(100):
            append(log, value, producer_id=producer, producer_epoch=0, base_sequence=index)
    log.roll()
    log.flush()
    log_dir.checkpoint()
    log_dir.close(clean=False)
    log_dir, log = reopened(tmp_path, config)
    assert log.segments_count > 2
    for producer in range(100):
        kept = next(each for each in log.producers if each.producer_id == producer).batches
        assert [batch.first_sequence for batch in kept] == [1, 2, 3, 4, 5]
    log_dir.close()


def test_snapshots_made_by_recovery_are_those_of_the_rolls(tmp_path: Path) -> None:
    fill(tmp_path)
    before = {path.name: path.read_bytes() for path in segment_files(tmp_path, ".snapshot")}
    for path in segment_files(tmp_path, ".snapshot"):
        path.unlink()
    log_dir, _ = reopened(tmp_path)
    after = {path.name: path.read_bytes() for path in segment_files(tmp_path, ".snapshot")}
    assert before.items() < after.items()
    assert after.keys() - before.keys() == {f"{COUNT:020d}.snapshot"}
    log_dir.close()


def test_recovery_removes_expired_producers(tmp_path: Path) -> None:
    fill(tmp_path)
    config = LogConfig(segment_bytes=600, producer_id_expiration_ms=1000)
    log_dir = open_log_dir(tmp_path, config, clock=ManualClock(NOW + 2000))
    assert not len(log_dir.logs["t", 0].producers)
    log_dir.close()


@pytest.mark.parametrize("cut", [1, 20, 61, 79, 80, 81, 150])
def test_a_torn_last_batch_is_cut_off(tmp_path: Path, cut: int) -> None:
    values = fill(tmp_path)
    path = segment_files(tmp_path, ".log")[-1]
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(max(size - cut, 0))
    log_dir, log = reopened(tmp_path)
    lost = -(-min(cut, size) // (size // (COUNT - int(path.stem))))
    assert_works_on(log, values[: COUNT - lost])
    log_dir.close()


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("segment", [0, 1, 2])
def test_segments_behind_one_that_lost_all_its_bytes_are_dropped(tmp_path: Path, segment: int, policy: str) -> None:
    """A power cut may keep the bytes of a later file only: an fsync of the earlier one was still to come."""
    values = fill(tmp_path)
    path = segment_files(tmp_path, ".log")[segment]
    os.truncate(path, 0)
    log_dir, log = reopened(tmp_path, msgspec.structs.replace(CONFIG, cleanup_policy=frozenset({policy})))
    assert_works_on(log, values[: int(path.stem)])
    log_dir.close()


def test_segments_behind_one_that_lost_whole_batches_are_dropped(tmp_path: Path) -> None:
    values = fill(tmp_path)
    path = segment_files(tmp_path, ".log")[1]
    os.truncate(path, len(numbered(int(path.stem))))
    log_dir, log = reopened(tmp_path)
    assert_works_on(log, values[: int(path.stem) + 1])
    log_dir.close()


@pytest.mark.parametrize("behind", [b"\0" * 10, b"\0" * 5000, b"\xff" * 100, bytes(batch(b"later"))[:-1]])
def test_bytes_behind_the_last_batch_are_cut_off(tmp_path: Path, behind: bytes) -> None:
    values = fill(tmp_path)
    path = segment_files(tmp_path, ".log")[-1]
    path.write_bytes(path.read_bytes() + behind)
    log_dir, log = reopened(tmp_path)
    assert_works_on(log, values)
    log_dir.close()


@pytest.mark.parametrize("segment", [0, 1, -1])
@pytest.mark.parametrize("at", [3, 9, 16, 20, 30, 70, 100, 200])
def test_a_flipped_bit_ends_the_log(tmp_path: Path, segment: int, at: int) -> None:
    values = fill(tmp_path)
    path = segment_files(tmp_path, ".log")[segment]
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)
    size = len(batch(b"value 0", producer_id=9, producer_epoch=0, base_sequence=0))
    log_dir, log = reopened(tmp_path)
    end = int(path.stem) + at // (size + (int(path.stem) >= 10))
    assert_works_on(log, values[:end])
    log_dir.close()


def test_nothing_below_the_recovery_point_is_read(tmp_path: Path) -> None:
    fill(tmp_path, flushed=COUNT)
    path = segment_files(tmp_path, ".log")[0]
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    log_dir, log = reopened(tmp_path)
    assert log.log_end_offset == COUNT
    log_dir.close()


def test_a_tail_changed_after_a_clean_stop_is_recovered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    values = fill(tmp_path)
    open_log_dir(tmp_path, CONFIG).close()
    path = segment_files(tmp_path, ".log")[-1]
    path.write_bytes(path.read_bytes()[:-10])
    log_dir, log = reopened(tmp_path)
    assert log.log_end_offset == COUNT
    assert values_of(log) == values[:-1]
    assert "does not end where it should" in caplog.text
    assert_works_on(log, values[:-1])
    log_dir.close()


def test_progress_is_reported(tmp_path: Path) -> None:
    fill(tmp_path)
    reports: list[tuple[str, int, int, int, int]] = []
    log_dir = make_log_dir(tmp_path)
    log_dir.open(lambda _: CONFIG, node_id=1, progress=lambda *report: reports.append(report))
    bases = sorted({base for _, _, base, _, _ in reports})
    assert bases == [int(path.stem) for path in segment_files(tmp_path, ".log")]
    done = [report[3] for report in reports]
    total = sum(path.stat().st_size for path in segment_files(tmp_path, ".log"))
    assert done == sorted(done)
    assert (done[-1], reports[-1]) == (total, ("t", 0, bases[-1], total, total))
    log_dir.close()


def test_the_transaction_index_is_rebuilt(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=350, index_interval_bytes=100)
    log_dir = open_log_dir(tmp_path, config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    for index in range(6):
        append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=index, is_transactional=True)
        log.append_as_leader(marker(1, 0, commit=index % 2 == 0), 0, NOW, Origin.COORDINATOR)
    append(log, b"open", producer_id=1, producer_epoch=0, base_sequence=6, is_transactional=True)
    aborted = log.aborted_transactions(0, 13)
    assert len(aborted) == 3
    log_dir.close(clean=False)
    for path in segment_files(tmp_path, ".txnindex"):
        path.write_bytes(b"garbage")
    log_dir, log = reopened(tmp_path, config)
    log.advance_high_watermark(13)
    assert (log.aborted_transactions(0, 13), log.last_stable_offset) == (aborted, 12)
    log_dir.close()


def test_recovery_logs_one_summary(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path)
    files = segment_files(tmp_path, ".log")
    files[-1].write_bytes(files[-1].read_bytes() + b"torn")
    read = sum(file.stat().st_size for file in files)
    with caplog.at_level(logging.INFO):
        log_dir, _ = reopened(tmp_path)
    [summary] = [message for message in caplog.messages if "not closed cleanly" in message]
    assert summary == (
        f"{tmp_path} was not closed cleanly, "
        f"logs recovered: 1, segments: {len(files)}, bytes read: {read}, bytes cut off: 4"
    )
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"], "the torn end, and the summary"
    log_dir.close()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        open_log_dir(tmp_path).close()
    assert not caplog.records, "nothing had to be recovered"


def follow_with_gaps(path: Path, *offsets: int) -> list[int]:
    """Write the log of a replica whose leader has batches at these offsets only; the process is killed then."""
    log_dir = open_log_dir(path, CONFIG)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    for offset in offsets:
        log.append_as_follower(bytearray(follower_batch(b"x" * 60, base_offset=offset)))
    assert len(log.segments) > 2
    found = [record.offset for record in read_all(log)]
    log_dir.close(clean=False)
    return found


@pytest.mark.parametrize("step", [3, 2**30, 2**31])
def test_the_replica_of_a_leader_that_compacts_is_whole_after_a_kill(tmp_path: Path, step: int) -> None:
    """When logs are opened, the broker does not know yet which topics are compacted."""
    offsets = follow_with_gaps(tmp_path, *range(0, 12 * step, step))

    log_dir, log = reopened(tmp_path, LogConfig())

    assert [record.offset for record in read_all(log)] == offsets == list(range(0, 12 * step, step))
    log_dir.close()


def test_gaps_between_segments_of_apache_kafka_are_kept_at_the_first_start(tmp_path: Path) -> None:
    """It may have been killed, and its compaction and its replicas leave gaps anywhere."""
    values = fill(tmp_path)
    removed = segment_files(tmp_path, ".log")[1]
    os.truncate(removed, 0)
    kept = [value for index, value in enumerate(values) if not int(removed.stem) <= index < int(removed.stem) + 7]
    new_log_dir = partial(LogDir, tmp_path, clock=ManualClock(NOW), randomness=SystemRandomness())

    log_dirs = LogDirs([new_log_dir()])
    log_dirs.open(lambda _: LogConfig(), node_id=NODE)

    assert values_of(log_dirs.logs["t", 0]) == kept
    log_dirs.close(clean=False)

    write_metadata_revision(OsFiles(), str(tmp_path), SeenMetadata(1, 1))
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    log_dirs = LogDirs([new_log_dir()])
    log_dirs.open(lambda _: LogConfig(), node_id=NODE)
    assert values_of(log_dirs.logs["t", 0]) == values[: int(removed.stem)]
    log_dirs.close()
