"""The world stops at the n-th change of the disk, for n = 1, 2, 3, … until the scenario completes; then it is opened.

What must hold then (see `simulated_disk` for what a stop may do): after a killed process every batch is there that was
acknowledged, after a power cut every one below the recovery point. After both, everything that is there was appended at
that very offset, the last batch is known as its producer's, and the log goes on from there.

After a power cut there may be a hole above the recovery point, as in Kafka: the tail of a segment that was never synced
is lost while the segment after it is not. Nothing in the files tells such a hole from one that compaction left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from broker.randomness import SeededRandomness
from broker.storage.log import Log
from broker.storage.log_config import LogConfig
from broker.storage.log_dir import LogDir
from broker.testing.clock import ManualClock
from tests.storage.logs import CLUSTER, NODE, NOW, TOPIC_ID, batch, marker, read_all
from tests.storage.simulated_disk import Directory, PowerCutError, SimulatedFiles

pytestmark = pytest.mark.crash

CONFIG = LogConfig(segment_bytes=330, index_interval_bytes=100, segment_index_bytes=400, file_delete_delay_ms=0)
PATH = "/data"
PRODUCER = 6


def open_on(files: SimulatedFiles) -> LogDir:
    log_dir = LogDir(PATH, files=files, clock=ManualClock(NOW), randomness=SeededRandomness(3), max_open_files=4)
    log_dir.open(lambda _: CONFIG, node_id=NODE, cluster_id=CLUSTER)
    return log_dir


class Scenario:
    """A life of a log, and what is promised of it at every moment.

    `appended` is all that the log was given and not asked to cut off, `acknowledged` and `synced` so many of these. A
    batch on its way is in `appended` already.
    """

    def __init__(self, files: SimulatedFiles) -> None:
        self.files = files
        self.appended: list[bytes] = []
        self.epochs: list[int] = []
        self.acknowledged = 0
        self.synced = 0
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
        log_dir.close()
        self.synced = self.acknowledged
        log_dir = open_on(self.files)
        log = log_dir.logs["t", 0]
        self.append(log, 4, leader_epoch=3)
        log_dir.deletions.run_due()
        log_dir.close()
        self.synced = self.acknowledged

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

    def truncate(self, log_dir: LogDir, log: Log, to: int) -> None:
        self.acknowledged, self.synced = min(self.acknowledged, to), min(self.synced, to)
        log.truncate_to(to)
        del self.appended[to:], self.epochs[to:]
        log_dir.checkpoint_recovery_points()


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
    assert [offset for offset, _ in found[:promised]] == list(range(promised))
    assert may_have_holes or len(found) == end
    assert log.topic_id == TOPIC_ID or not promised
    assert [log.epoch_for_offset(offset) for offset, _ in found] == [scenario.epochs[offset] for offset, _ in found]
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


def stops() -> Iterator[tuple[Scenario, SimulatedFiles]]:
    """The scenario stopped at every operation, one after the other."""
    stop_at = 0
    while True:
        stop_at += 1
        files = SimulatedFiles(stop_at=stop_at, seed=stop_at)
        scenario = Scenario(files)
        try:
            scenario.run()
        except PowerCutError:
            yield scenario, files
        else:
            assert files.operations == stop_at - 1
            return


def test_a_process_killed_at_any_moment_loses_nothing_acknowledged() -> None:
    count = 0
    for scenario, files in stops():
        check(files.after_kill(), scenario, scenario.acknowledged)
        count += 1
    assert count > 200


@pytest.mark.parametrize("seed", range(4))
def test_a_power_cut_at_any_moment_loses_nothing_synced(seed: int) -> None:
    for scenario, files in stops():
        check(files.after_power_cut(seed), scenario, scenario.synced, may_have_holes=True)


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
        log.append_as_leader(marker(PRODUCER, 0, commit=index % 2 == 0), 0, NOW, from_client=False)
    log_dir.close()
