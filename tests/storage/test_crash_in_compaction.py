"""Compaction and retention stopped at every operation on the disk."""

from __future__ import annotations

from contextlib import suppress

import pytest

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import Answers, Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.broker.storage.compaction.log_cleaning import LogCleaning
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import KafkaError
from tests.storage.crash_checks import PATH, assert_sound, open_on
from tests.storage.logs import NOW, TOPIC_ID, batch, read_all
from tests.storage.simulated_disk import Directory, PowerCutError, SimulatedFiles

pytestmark = pytest.mark.crash


COMPACTED = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=330,
    index_interval_bytes=100,
    segment_index_bytes=400,
    file_delete_delay_ms=0,
    min_cleanable_dirty_ratio=0.01,
    retention_ms=-1,
)


KEYS = 5


class Compaction:
    """A compacted log: `values` are the last ones by key of what is synced, which must never be missed.

    `has_leftovers`: before each round there are files that an earlier one did not remove. `is_synced`: else `values`
    are of what is written, and only compaction itself syncs.
    """

    def __init__(self, files: SimulatedFiles, *, has_leftovers: bool = False, is_synced: bool = True) -> None:
        self.files = files
        self.has_leftovers = has_leftovers
        self.is_synced = is_synced
        self.appended: dict[int, tuple[bytes, bytes]] = {}
        self.values: dict[bytes, bytes] = {}
        self.start = 0
        self.log_dir: LogDir | None = None  # once it is open

    def run(self) -> None:
        self.log_dir = log_dir = open_on(self.files, COMPACTED)
        log = log_dir.create_log("t", 0, TOPIC_ID, COMPACTED)
        cleaner = Cleaner([log_dir], ManualClock(NOW))
        for turn in range(2):
            self.append(log, turn)
            if self.is_synced:
                log.flush()
            self.values = dict(self.appended.values())
            if self.is_synced:
                log_dir.checkpoint()
            while self.leave_files() and cleaner.run_once(self.clean, CleanerSettings(buffer_bytes=24_000)):
                pass
            log_dir.deletions.run_due()
        log.update_log_start_offset(log.active_segment.base_offset)
        self.start = log.log_start_offset
        log_dir.checkpoint_log_start_offsets()
        log.delete_segments(log.segments_to_delete())
        log_dir.deletions.run_due()
        log_dir.close()

    def leave_files(self) -> bool:
        """Leave half a `.cleaned` segment behind, below most of those that are compacted next."""
        path = f"{PATH}/t-0/{1:020d}.log.cleaned"
        if self.has_leftovers and not self.files.exists(path):
            number = self.files.open(path, create=True)
            self.files.pwrite(number, b"half a ba", 0)
            self.files.close(number)
        return True

    def append(self, log: Log, turn: int) -> None:
        for index in range(16):
            key, value = b"%d" % (index % KEYS), b"%d, %d" % (turn, index)
            self.appended[log.log_end_offset] = key, value
            log.append_as_leader(batch(value, key=key), 0, NOW)
        log.roll()
        log.advance_high_watermark(log.log_end_offset)

    def clean(self, job: CleaningJob, _: CleaningState) -> Answers:
        descriptors = DescriptorCache(self.files)
        cleaning = LogCleaning(job, descriptors, ManualClock(NOW))
        yield from cleaning
        yield cleaning.done


@pytest.mark.parametrize(
    ("seed", "has_leftovers", "is_synced"),
    [(None, False, True), (1, False, True), (None, True, True), (None, False, False)],
    ids=["kill", "power cut", "leftovers", "kill before a sync"],
)
def test_compaction_and_retention_stopped_at_any_moment_lose_no_last_value(
    seed: int | None, has_leftovers: bool, is_synced: bool
) -> None:
    """Every record found is one that was appended there, and of every key there is the last that was synced, or later.

    And what compaction left unfinished can be finished: the next round comes to the same end. The directory is opened
    as a broker does, which does not know yet that the topic is compacted.
    """
    stop_at = 0
    while True:
        stop_at += 1
        files = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        scenario = Compaction(files, has_leftovers=has_leftovers, is_synced=is_synced)
        try:
            scenario.run()
            break
        except PowerCutError:
            pass
        check_and_finish(files.after_kill() if seed is None else files.after_power_cut(seed), scenario)
    assert stop_at > 150


def test_stopping_while_a_swap_is_completed_or_undone_changes_nothing() -> None:
    """Every stop with other files of compaction in the directory, then every stop of the opening that settles them."""
    stop_at = 0
    seen: set[frozenset[str]] = set()
    while True:
        stop_at += 1
        stopped = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        scenario = Compaction(stopped)
        try:
            scenario.run()
            break
        except PowerCutError:
            pass
        names = frozenset(names_in(stopped, f"{PATH}/t-0"))
        if names in seen or not any(name.endswith((".cleaned", ".swap")) for name in names):
            continue
        seen.add(names)
        again_at = 0
        is_open = False
        while not is_open:
            again_at += 1
            files = SimulatedFiles(stopped.after_kill(), stop_at=again_at)
            with suppress(PowerCutError):
                open_on(files, COMPACTED)
                is_open = True
            log = open_on(SimulatedFiles(files.after_kill()), COMPACTED).logs["t", 0]
            log.advance_high_watermark(log.log_end_offset)
            check_compacted(log, scenario)
    assert len(seen) > 50


def names_in(files: SimulatedFiles, directory: str) -> list[str]:
    with suppress(FileNotFoundError):
        return [entry.name for entry in files.scan(directory)]
    return []


@pytest.mark.parametrize(("what", "at_least"), [("fail_at", 150), ("fail_read_at", 15)])
def test_a_disk_that_fails_at_any_moment_of_compaction_loses_no_last_value(what: str, at_least: int) -> None:
    """One write, sync, rename or read fails, in the broker or in the worker; later ones would succeed.

    That takes the directory offline: nothing of it is passed over. Then the process ends, or the machine.
    """
    fail_at = 0
    while True:
        fail_at += 1
        files = SimulatedFiles(seed=fail_at, **{what: fail_at})
        scenario = Compaction(files)
        with suppress(OSError, KafkaError):  # the first while the directory is opened: nothing can be served then
            scenario.run()
        if fail_at > (files.operations if what == "fail_at" else files.reads):
            break
        assert scenario.log_dir is None or scenario.log_dir.failure.error is not None
        check_and_finish(files.after_power_cut(fail_at) if fail_at % 2 else files.after_kill(), scenario)
    assert fail_at > at_least


def check_and_finish(root: Directory, scenario: Compaction) -> None:
    """Open the compacted log on what is left of the disk, see that it holds what it must, and compact it again."""
    files = SimulatedFiles(root)
    log_dir = open_on(files, LogConfig())
    log = log_dir.logs.get(("t", 0))
    if log is not None:
        log.configure(COMPACTED)
        log.advance_high_watermark(log.log_end_offset)
        check_compacted(log, scenario)
        again = Compaction(files)
        log.roll()
        log.advance_high_watermark(log.log_end_offset)
        cleaner = Cleaner([log_dir], ManualClock(NOW))
        while cleaner.run_once(again.clean, CleanerSettings(buffer_bytes=24_000)):
            pass
        assert cleaner.uncleanable(log_dir) == (0, 0)
        check_compacted(log, scenario)
        names = {entry.name for entry in files.scan(f"{PATH}/t-0")}
        assert not {name for name in names if name.endswith((".cleaned", ".swap"))}
        log_dir.create_log("t", 0, TOPIC_ID, COMPACTED)  # writes down its topic id, where that was lost
    log_dir.close()
    assert_sound(root, may_lack_epochs=True)


def check_compacted(log: Log, scenario: Compaction) -> None:
    """The log holds what was appended, where it was, once, and the last value of every key."""
    found = [(record.offset, record.key, record.value) for record in read_all(log)]
    assert [scenario.appended[offset] for offset, _, _ in found] == [(key, value) for _, key, value in found]
    assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
    last = {key: offset for offset, key, _ in found}
    wanted: dict[bytes, int] = {}
    for offset, (key, value) in scenario.appended.items():
        if scenario.values.get(key) == value and offset >= log.log_start_offset:
            wanted[key] = offset
    assert all(last[key] >= offset for key, offset in wanted.items())
    assert log.log_start_offset <= scenario.start
