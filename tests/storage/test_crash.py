"""A stop at the n-th change of the disk, for n = 1, 2, 3, … until the scenario completes; then a start.

What must hold then (see `simulated_disk` for what a stop may do): after a killed process every batch is there that was
acknowledged, after a power cut every one below the recovery point. After both, everything that is there was appended at
that very offset, the last batch is known as its producer's, and the log goes on from there. Then all indexes,
snapshots and checkpoints are what a walk over the log makes of it (`odradek.broker.inspection.verification`).

`Scenario` syncs now and then, as a broker does by default; `FlushingScenario` before each acknowledgement, as under
flush.messages=1, so that all that is acknowledged must survive a power cut.

After a power cut there may be a hole above the recovery point, as in Kafka: the tail of a segment that was never synced
is lost while the segment after it is not. The files do not distinguish such a hole from one that compaction left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.errors import KafkaError
from tests.storage.crash_checks import CONFIG, assert_sound, open_on
from tests.storage.logs import NOW, TOPIC_ID, batch, marker, read_all
from tests.storage.simulated_disk import Directory, PowerCutError, SimulatedFiles

pytestmark = pytest.mark.crash


PRODUCER = 6


class Scenario:
    """A life of a log, and what is promised of it at every moment.

    `appended` is all that was appended to the log and not truncated, `acknowledged` and `synced` so many of these. A
    batch on its way is in `appended` already.
    """

    def __init__(self, files: SimulatedFiles) -> None:
        self.files = files
        self.appended: list[bytes] = []
        self.epochs: list[int] = []
        self.acknowledged = 0
        self.synced = 0
        self.start = 0  # what is below may be deleted
        self.is_created = False
        self.counter = 0

    def run(self) -> None:
        log_dir = open_on(self.files)
        log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
        self.is_created = True
        self.append(log, 3)
        self.flush(log)
        self.append(log, 9)
        log_dir.checkpoint()
        self.flush(log, log.active_segment.base_offset)
        self.append(log, 2, leader_epoch=1)
        self.truncate(log_dir, log, len(self.appended) - 6)
        self.append(log, 3, leader_epoch=2)
        log_dir.create_log("other", 0, TOPIC_ID, CONFIG)
        log_dir.deletions.run_due()
        log.advance_high_watermark(log.log_end_offset)
        log_dir.delete_log("other", 0)
        log_dir.checkpoint()
        self.close(log_dir)
        log_dir = open_on(self.files)
        log = log_dir.logs["t", 0]
        self.append(log, 4, leader_epoch=3)
        log_dir.deletions.run_due()
        self.close(log_dir)

    def append(self, log: Log, count: int, leader_epoch: int = 0) -> None:
        for _ in range(count):
            value = b"value %d" % self.counter
            self.counter += 1
            self.appended.append(value)
            self.epochs.append(leader_epoch)
            data = batch(value, producer_id=PRODUCER, producer_epoch=0, base_sequence=len(self.appended) - 1)
            assert log.append_as_leader(data, leader_epoch, NOW).base_offset == len(self.appended) - 1
            self.acknowledged = len(self.appended)

    def flush(self, log: Log, up_to: int | None = None) -> None:
        log.flush(up_to)
        self.synced = log.recovery_point

    def close(self, log_dir: LogDir) -> None:
        log_dir.close()
        if log_dir.failure.error is None:
            self.synced = self.acknowledged

    def truncate(self, log_dir: LogDir, log: Log, to: int) -> None:
        self.acknowledged, self.synced = min(self.acknowledged, to), min(self.synced, to)
        log.truncate_to(to)
        del self.appended[to:], self.epochs[to:]
        log_dir.checkpoint_recovery_points()


class FlushingScenario(Scenario):
    """The same where every acknowledgement means that the records are on the disk."""

    def run(self) -> None:
        log_dir = open_on(self.files)
        log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
        self.is_created = True
        for epoch in range(3):
            self.append(log, 4, leader_epoch=epoch)
            log_dir.checkpoint_recovery_points()
        self.truncate(log_dir, log, len(self.appended) - 2)
        self.append(log, 6, leader_epoch=3)
        self.delete_below(log_dir, log, 7)
        self.append(log, 2, leader_epoch=3)
        log_dir.close()
        log_dir = open_on(self.files)
        self.append(log_dir.logs["t", 0], 3, leader_epoch=4)
        log_dir.checkpoint()

    def append(self, log: Log, count: int, leader_epoch: int = 0) -> None:
        for _ in range(count):
            super().append(log, 1, leader_epoch)
            log.flush()
            self.synced = self.acknowledged

    def delete_below(self, log_dir: LogDir, log: Log, offset: int) -> None:
        self.start = offset
        log.advance_high_watermark(log.log_end_offset)
        log.update_log_start_offset(offset)
        log_dir.checkpoint_log_start_offsets()
        first = log.segments.from_offset(offset)[0].base_offset
        log.delete_segments([segment for segment in log.segments if segment.base_offset < first])
        log_dir.deletions.run_due()


def check(root: Directory, scenario: Scenario, promised: int, *, may_have_holes: bool = False) -> None:
    """Open the log on what is left of the disk, and again, and see that it holds what it must and nothing else."""
    log_dir = open_on(SimulatedFiles(root))
    log = log_dir.logs.get(("t", 0))
    if log is None:
        assert not scenario.is_created or promised == 0
        log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    found = [(record.offset, record.value) for record in read_all(log)]
    end = log.log_end_offset
    assert found == [(offset, scenario.appended[offset]) for offset, _ in found]
    start = log.log_start_offset
    assert start <= scenario.start
    assert [offset for offset, _ in found if offset < promised] == list(range(start, promised))
    assert may_have_holes or len(found) == end - start
    assert log.topic_id == TOPIC_ID or not promised
    assert log_dir.create_log("t", 0, TOPIC_ID, CONFIG) is log
    kept = [offset for offset, _ in found if offset >= scenario.start]
    assert [log.epoch_for_offset(offset) for offset in kept] == [scenario.epochs[offset] for offset in kept]
    if found:
        last, value = found[-1]
        again = batch(value, producer_id=PRODUCER, producer_epoch=0, base_sequence=last)
        info = log.append_as_leader(again, 9, NOW)
        assert (info.duplicate, info.base_offset) == (True, last)
    more = batch(b"more", producer_id=PRODUCER, producer_epoch=0, base_sequence=found[-1][0] + 1 if found else 0)
    assert log.append_as_leader(more, 9, NOW).base_offset == end
    log_dir.close()
    log_dir = open_on(SimulatedFiles(root))
    assert log_dir.was_clean
    again_found = [(record.offset, record.value) for record in read_all(log_dir.logs["t", 0])]
    assert again_found == [*found, (end, b"more")]
    log_dir.close()
    assert_sound(root)


def stops(kind: type[Scenario] = Scenario) -> Iterator[tuple[Scenario, SimulatedFiles]]:
    """The scenario stopped at every operation, one after the other."""
    stop_at = 0
    while True:
        stop_at += 1
        files = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        scenario = kind(files)
        try:
            scenario.run()
        except PowerCutError:
            yield scenario, files
        else:
            assert files.operations == stop_at - 1
            return


@pytest.mark.parametrize("kind", [Scenario, FlushingScenario])
def test_a_process_killed_at_any_moment_loses_nothing_acknowledged(kind: type[Scenario]) -> None:
    count = 0
    for scenario, files in stops(kind):
        check(files.after_kill(), scenario, scenario.acknowledged)
        count += 1
    assert count > 200


@pytest.mark.parametrize("kind", [Scenario, FlushingScenario])
@pytest.mark.parametrize("seed", range(4))
def test_a_power_cut_at_any_moment_loses_nothing_synced(kind: type[Scenario], seed: int) -> None:
    for scenario, files in stops(kind):
        check(files.after_power_cut(seed), scenario, scenario.synced, may_have_holes=True)


@pytest.mark.parametrize("kind", [Scenario, FlushingScenario])
def test_a_disk_that_fails_at_any_moment_loses_nothing_synced(kind: type[Scenario]) -> None:
    """One operation fails, all later ones would succeed; then the process ends, or the machine."""
    fail_at = 0
    while True:
        fail_at += 1
        files = SimulatedFiles(fail_at=fail_at, seed=fail_at)
        scenario = kind(files)
        with suppress(OSError, KafkaError):  # the first while the directory is opened: nothing can be served then
            scenario.run()
        if files.operations < fail_at:
            return
        check(files.after_kill(), scenario, scenario.acknowledged)
        check(files.after_power_cut(fail_at), scenario, scenario.synced, may_have_holes=True)


@pytest.mark.parametrize(
    "cut", [SimulatedFiles.after_kill, lambda files: files.after_power_cut(5)], ids=["kill", "power"]
)
def test_stopping_while_recovering_changes_nothing(cut: Callable[[SimulatedFiles], Directory]) -> None:
    """Every seventh stop of the scenario; then recovery itself is stopped here and there, and then it may complete."""
    chance = random.Random(1)
    for index, (scenario, stopped) in enumerate(stops()):
        if index % 7:
            continue
        root = stopped.after_kill()
        promised = scenario.acknowledged
        stop_at = 0
        while True:
            stop_at += chance.randrange(1, 6)
            files = SimulatedFiles(root.after_kill(), stop_at=stop_at, seed=stop_at)
            try:
                open_on(files)
            except PowerCutError:
                check(cut(files), scenario, promised)
            else:
                break


def test_transactions_survive_a_kill_at_any_moment() -> None:
    """Whatever of the log is there, the aborted transactions and the last stable offset are those of exactly that."""
    stop_at = 0
    while True:
        stop_at += 1
        files = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        try:
            run_transactions(open_on(files))
            break
        except PowerCutError:
            pass
        log_dir = open_on(SimulatedFiles(files.after_kill()))
        log = log_dir.logs.get(("t", 0))
        if log is not None:
            end = log.log_end_offset
            log.advance_high_watermark(end)
            assert log.aborted_transactions(0, end) == [(PRODUCER, first) for first, last in ABORTED if last < end]
            assert log.last_stable_offset == (end - end % 3 if end % 3 else end)
        log_dir.close()


ABORTED = [(3, 5), (9, 11), (15, 17)]  # first offset and marker of every second transaction of three batches each


def run_transactions(log_dir: LogDir) -> None:
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    for index in range(6):
        for step in range(2):
            data = batch(
                b"v", producer_id=PRODUCER, producer_epoch=0, base_sequence=2 * index + step, is_transactional=True
            )
            log.append_as_leader(data, 0, NOW)
        log.append_as_leader(marker(PRODUCER, 0, commit=index % 2 == 0), 0, NOW, Origin.COORDINATOR)
    log_dir.close()


@pytest.mark.parametrize("seed", range(10))
def test_a_log_without_records_survives_a_power_cut_if_every_record_is_synced(seed: int) -> None:
    """Else an in-sync replica would lack its log, and a partition that nobody has written to would have no leader."""
    files = SimulatedFiles()
    open_on(files).create_log("t", 0, TOPIC_ID, LogConfig(flush_messages=1))

    log = open_on(SimulatedFiles(files.after_power_cut(seed))).logs["t", 0]

    assert (log.topic_id, log.log_end_offset) == (TOPIC_ID, 0)
