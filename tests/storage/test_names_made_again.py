"""Names outlive topics: a log is retired and made again under its name, with a stop at every change of the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.names import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS
from tests.storage.crash_checks import CONFIG, open_on
from tests.storage.logs import NOW, OTHER_ID, TOPIC_ID, append, batch, open_log_dir, read_all
from tests.storage.simulated_disk import Directory, PowerCutError, SimulatedFiles

OLD, NEW = 9, 10  # records of the first topic, and of the second, whose end is above all offsets of the first
CHECKPOINTS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)

Retire = Callable[[LogDir], object]
RETIREMENTS: list[Retire] = [
    lambda log_dir: log_dir.delete_log("t", 0),
    lambda log_dir: log_dir.set_log_aside("t", 0),
]


class Life:
    """A topic with rows in every checkpoint that is retired, and another one of its name."""

    def __init__(self, files: SimulatedFiles, retire: Retire) -> None:
        self.files = files
        self.retire = retire
        self.acknowledged = 0  # records of the second topic
        self.synced = 0
        self.is_retired = False

    def run(self) -> None:
        log_dir = open_on(self.files)
        log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
        for _ in range(OLD):
            append(log, b"old")
        log.flush()
        log.advance_high_watermark(OLD)
        log.update_log_start_offset(OLD - 1)
        log.cleaned_offset = OLD - 2
        log_dir.checkpoint()
        log_dir.checkpoint_cleaned_offsets()
        self.retire(log_dir)
        self.is_retired = True
        log = log_dir.create_log("t", 0, OTHER_ID, CONFIG)
        for number in range(NEW):
            append(log, b"new %d" % number)
            self.acknowledged += 1
        log.flush(3)
        self.synced = 3


def stops(retire: Retire) -> list[tuple[Life, SimulatedFiles]]:
    """The life stopped at each change of the disk, and after the last one."""
    found = []
    for stop_at in range(1, 1000):
        files = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        life = Life(files, retire)
        found.append((life, files))
        try:
            life.run()
        except PowerCutError:
            continue
        return found
    raise AssertionError("it does not end")


def check(root: Directory, life: Life, promised: int) -> None:
    log_dir = open_on(SimulatedFiles(root))
    log = log_dir.logs.get(("t", 0))
    if log is not None and log.topic_id == OTHER_ID:
        values = [(record.offset, record.value) for record in read_all(log)]
        assert values[:promised] == [(number, b"new %d" % number) for number in range(promised)]
        assert (log.log_start_offset, log.high_watermark, log.cleaned_offset) == (0, 0, None)
    else:
        assert promised == 0
        if life.is_retired:
            assert log is None or log.topic_id != TOPIC_ID
    log_dir.close(clean=False)


@pytest.mark.crash
@pytest.mark.parametrize("retire", RETIREMENTS, ids=["deleted", "set aside"])
def test_a_new_topic_inherits_no_offset_whenever_the_process_is_killed(retire: Retire) -> None:
    for life, files in stops(retire):
        check(files.after_kill(), life, life.acknowledged)


@pytest.mark.crash
@pytest.mark.parametrize("retire", RETIREMENTS, ids=["deleted", "set aside"])
@pytest.mark.parametrize("seed", range(4))
def test_a_new_topic_inherits_no_offset_whenever_the_power_fails(retire: Retire, seed: int) -> None:
    for life, files in stops(retire):
        check(files.after_power_cut(seed), life, life.synced)


@pytest.mark.parametrize("retire", RETIREMENTS, ids=["deleted", "set aside"])
def test_rows_of_a_retired_log_are_gone_when_the_call_returns(tmp_path: Path, retire: Retire) -> None:
    log_dir = with_rows(tmp_path)

    retire(log_dir)

    assert rows_in(tmp_path) == {name: ["kept 0"] for name in CHECKPOINTS}
    log_dir.close(clean=False)


def test_a_log_inherits_no_row_that_was_there_without_a_log(tmp_path: Path) -> None:
    """Its log vanished with a power cut, or in a log directory that Apache Kafka wrote."""
    log_dir = with_rows(tmp_path)
    log_dir.close(clean=False)
    (tmp_path / "t-0").rename(tmp_path / "elsewhere")
    log_dir = open_log_dir(tmp_path)

    log_dir.create_log("t", 0, OTHER_ID, CONFIG)

    assert not [rows for rows in rows_in(tmp_path).values() if "t 0" in rows]
    log_dir.close(clean=False)


def test_a_log_inherits_no_file_of_a_log_that_was_lost(tmp_path: Path) -> None:
    """Neither topic id nor segment reached the disk, but a snapshot of the producers and the leader epochs did."""
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log, b"old", leader_epoch=7, producer_id=5, producer_epoch=0, base_sequence=0)
    log_dir.close()
    for name in ("partition.metadata", "00000000000000000000.log"):
        (tmp_path / "t-0" / name).unlink()
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, OTHER_ID, CONFIG)
    append(log, b"new")
    log_dir.close(clean=False)

    log_dir = open_log_dir(tmp_path)

    log = log_dir.logs["t", 0]
    assert (log.latest_leader_epoch, len(log.producers)) == (0, 0)
    log_dir.close()


def with_rows(path: Path) -> LogDir:
    """Two logs with a row in every checkpoint."""
    log_dir = open_log_dir(path)
    for topic in ("t", "kept"):
        log = log_dir.create_log(topic, 0, TOPIC_ID, CONFIG)
        for _ in range(OLD):
            log.append_as_leader(batch(b"old"), 0, NOW)
        log.flush()
        log.advance_high_watermark(OLD)
        log.update_log_start_offset(OLD - 1)
        log.cleaned_offset = OLD - 2
    log_dir.checkpoint()
    log_dir.checkpoint_cleaned_offsets()
    return log_dir


def rows_in(path: Path) -> dict[str, list[str]]:
    """The topic and partition of each row, by file."""
    return {
        name: [line.rpartition(" ")[0] for line in (path / name).read_text().splitlines()[2:]] for name in CHECKPOINTS
    }
