"""What lowers an offset of a log lowers its row in the checkpoints, so that none is above what a kill leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.names import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS
from tests.storage.crash_checks import CONFIG, open_on
from tests.storage.logs import NOW, TOPIC_ID, append, batch, follower_batch, open_log_dir, read_all
from tests.storage.simulated_disk import Directory, PowerCutError, SimulatedFiles

END, START, CLEANED = 20, 15, 14
CUT = 5

Truncate = Callable[[Log, int], object]
TRUNCATIONS: list[Truncate] = [Log.truncate_to, Log.truncate_fully_and_start_at]
NAMES = ["in place", "begun anew"]


def filled(log_dir: LogDir) -> Log:
    """A log with a row in every checkpoint."""
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    for _ in range(END):
        append(log, b"old")
    log.flush()
    log.advance_high_watermark(END)
    log.update_log_start_offset(START)
    log.cleaned_offset = CLEANED
    log_dir.checkpoint()
    log_dir.checkpoint_cleaned_offsets()
    return log


def rows(path: Path) -> dict[str, int]:
    found = {}
    for name in (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        for line in (path / name).read_text().splitlines()[2:]:
            found[name] = int(line.split()[-1])
    return found


@pytest.mark.parametrize("truncate", TRUNCATIONS, ids=NAMES)
def test_a_truncation_lowers_the_rows_before_it_returns(tmp_path: Path, truncate: Truncate) -> None:
    log_dir = open_log_dir(tmp_path, CONFIG)
    log = filled(log_dir)
    assert set(rows(tmp_path).values()) == {END, START, CLEANED}

    truncate(log, CUT)

    assert set(rows(tmp_path).values()) == {CUT}
    log_dir.close(clean=False)


class Life:
    """A follower whose records are replaced, after an unclean election, by those of another leader."""

    def __init__(self, files: SimulatedFiles, truncate: Truncate) -> None:
        self.files = files
        self.truncate = truncate
        self.appended = CUT  # the end of the new leader's records that are certain to be in the log

    def run(self) -> None:
        log = filled(open_on(self.files))
        self.truncate(log, CUT)
        for offset in range(CUT, END + 3):
            log.append_as_follower(follower_batch(b"new", base_offset=offset, leader_epoch=1))
            self.appended = offset + 1


def check(root: Directory, life: Life) -> None:
    log_dir = open_on(SimulatedFiles(root))
    log = log_dir.logs.get(("t", 0))
    if log is not None and life.appended > CUT:
        found = [record.offset for record in read_all(log) if record.value == b"new"]
        assert found == list(range(CUT, len(found) + CUT))
        assert len(found) >= life.appended - CUT
        assert log.log_start_offset <= CUT
        assert log.high_watermark <= CUT
        assert log.cleaned_offset is None or log.cleaned_offset <= CUT
    log_dir.close(clean=False)


@pytest.mark.crash
@pytest.mark.parametrize("truncate", TRUNCATIONS, ids=NAMES)
def test_records_after_a_truncation_are_found_whenever_the_process_is_killed(truncate: Truncate) -> None:
    for stop_at in range(1, 1000):
        files = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        life = Life(files, truncate)
        try:
            life.run()
        except PowerCutError:
            check(files.after_kill(), life)
            continue
        check(files.after_kill(), life)
        return
    raise AssertionError("it does not end")


def test_a_recovery_that_loses_records_lowers_the_rows(tmp_path: Path) -> None:
    """A power cut took the records; what is appended then is not committed because older records were."""
    log_dir = open_log_dir(tmp_path)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    for _ in range(END):
        append(log, b"old")
    log.advance_high_watermark(END)
    log_dir.checkpoint()
    log_dir.close(clean=False)
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(bytes(batch(b"old")))
    for path in (tmp_path / "t-0").glob("*[1-9].*"):
        path.unlink()
    log_dir = open_log_dir(tmp_path)
    log = log_dir.logs["t", 0]
    assert log.log_end_offset == 1
    for _ in range(END):
        append(log, b"new")
    log_dir.close(clean=False)

    log_dir = open_log_dir(tmp_path)

    assert log_dir.logs["t", 0].high_watermark == 1
    log_dir.close()


def test_a_start_above_the_end_is_ignored_after_an_unclean_stop(tmp_path: Path) -> None:
    """A kill came between a truncation and the row."""
    log_dir = open_log_dir(tmp_path, CONFIG)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log, b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0)
    log_dir.close(clean=False)
    (tmp_path / LOG_START_OFFSETS).write_text("0\n1\nt 0 90\n")

    log_dir = open_log_dir(tmp_path, CONFIG)

    log = log_dir.logs["t", 0]
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)
    again = log.append_as_leader(batch(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0), 0, NOW)
    assert again.duplicate
    assert LOG_START_OFFSETS not in rows(tmp_path)
    log_dir.close()


def test_a_clean_stop_writes_the_cleaned_offsets(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path, CONFIG)
    filled(log_dir).cleaned_offset = 7

    log_dir.close()

    assert rows(tmp_path)[CLEANER_OFFSETS] == 7
    log_dir = open_log_dir(tmp_path, CONFIG)
    assert log_dir.logs["t", 0].cleaned_offset == 7
    log_dir.close()


def test_a_cleaned_offset_is_not_above_the_end_of_its_log(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path, CONFIG)
    append(log_dir.create_log("t", 0, TOPIC_ID, CONFIG), b"a")
    log_dir.close()
    (tmp_path / CLEANER_OFFSETS).write_text("0\n1\nt 0 90\n")

    log_dir = open_log_dir(tmp_path, CONFIG)

    assert log_dir.logs["t", 0].cleaned_offset == 1
    log_dir.close()
