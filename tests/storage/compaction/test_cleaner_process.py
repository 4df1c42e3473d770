"""Compaction in another process: the same result, its priority, and how it is stopped or killed."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import Answers, Clean
from odradek.broker.storage.compaction.cleaner_process import CleanerProcess
from odradek.broker.storage.compaction.cleaning_job import CleaningDone, CleaningJob
from tests.storage.compaction.compacted import Compacted, fill
from tests.storage.logs import TOPIC_ID

pytestmark = pytest.mark.process

OWN_NICENESS = os.getpriority(os.PRIO_PROCESS, 0)


@pytest.fixture
def worker() -> Iterator[CleanerProcess]:
    made = CleanerProcess()
    yield made
    made.close()


def test_another_process_compacts_alike(compacted: Compacted, worker: CleanerProcess) -> None:
    fill(compacted)
    assert compacted.compact(worker.clean)
    assert [value for _, _, value in compacted.left()] == [b"56", b"57", b"58", b"59"]
    compacted.put(b"k0", b"new")
    compacted.roll()
    assert compacted.compact(worker.clean)


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENOENT])
def test_a_process_that_cannot_be_started_is_started_in_a_later_round(
    compacted: Compacted, worker: CleanerProcess, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    fill(compacted)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", refuse)
        for _ in range(4):
            assert not compacted.compact(worker.clean)
    assert compacted.log_dir.failure.error is None
    assert compacted.compact(worker.clean)


def test_the_process_imports_from_where_its_broker_does(
    compacted: Compacted, worker: CleanerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as of `python -c`
    fill(compacted)
    assert compacted.compact(worker.clean)
    environment = Path(f"/proc/{worker.pid}/environ").read_text().split("\0")
    assert f"PYTHONPATH={os.pathsep.join([str(tmp_path), *sys.path[1:]])}" in environment


def test_the_process_has_the_idle_priority(compacted: Compacted, worker: CleanerProcess) -> None:
    fill(compacted)
    assert compacted.compact(worker.clean)
    assert worker.pid is not None
    assert os.sched_getscheduler(worker.pid) == os.SCHED_IDLE


@pytest.mark.parametrize(
    ("forbidden", "niceness"), [(["sched_setscheduler"], 19), (["sched_setscheduler", "setpriority"], OWN_NICENESS)]
)
def test_it_compacts_if_its_priority_cannot_be_changed(
    compacted: Compacted, worker: CleanerProcess, monkeypatch: pytest.MonkeyPatch, forbidden: list[str], niceness: int
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("not in this sandbox")

    for name in forbidden:
        monkeypatch.setattr(os, name, refuse)
    fill(compacted)
    assert compacted.compact(worker.clean)
    assert worker.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == niceness


def test_a_stopped_worker_ends_the_round_without_harm(compacted: Compacted, worker: CleanerProcess) -> None:
    fill(compacted)

    def cleaning(job: CleaningJob, state: CleaningState) -> Answers:
        for answer in worker.clean(job, state):
            worker.stop()
            yield answer

    assert not compacted.compact(cleaning)
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)
    assert {key: value for _, key, value in compacted.left()} == {b"k%d" % n: b"%d" % (56 + n) for n in range(4)}
    assert compacted.compact()


def test_the_worker_of_a_log_that_is_deleted_ends_before_the_directory_is_renamed(
    compacted: Compacted, worker: CleanerProcess
) -> None:
    """Otherwise it would continue in the directory of the next topic of that name."""
    fill(compacted)
    pids: list[int] = []

    def delete() -> None:
        compacted.log_dir.delete_log("t", 0)
        with pytest.raises(ProcessLookupError):
            os.kill(pids[0], 0)

    with ThreadPoolExecutor(1) as thread:
        deleting: list[Future[None]] = []

        def cleaning(job: CleaningJob, state: CleaningState) -> Answers:
            for answer in worker.clean(job, state):
                assert worker.pid is not None
                os.kill(worker.pid, signal.SIGSTOP)  # it is in the middle of its job until it is killed
                pids.append(worker.pid)
                deleting.append(thread.submit(delete))
                yield answer

        assert not compacted.compact(cleaning)
        deleting[0].result()
    assert (len(pids), worker.deaths) == (1, 0)
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)
    compacted.log = compacted.log_dir.create_log("t", 0, TOPIC_ID, compacted.config)
    fill(compacted)
    assert compacted.compact(worker.clean)
    assert [value for _, _, value in compacted.left()] == [b"56", b"57", b"58", b"59"]


def test_an_abort_after_the_last_answer_does_not_fail_the_next_job(
    compacted: Compacted, worker: CleanerProcess
) -> None:
    def cleaning(job: CleaningJob, state: CleaningState) -> Answers:
        for answer in worker.clean(job, state):
            if isinstance(answer, CleaningDone):
                state.abort()
            yield answer

    for clean in (cleaning, worker.clean):
        fill(compacted)
        assert compacted.compact(clean)
    assert worker.deaths == 0


def killing(worker: CleanerProcess) -> Clean:
    """Compaction whose worker is killed from outside after the first group."""

    def cleaning(job: CleaningJob, state: CleaningState) -> Answers:
        for answer in worker.clean(job, state):
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            yield answer

    return cleaning


def test_a_log_whose_worker_was_killed_is_retried(compacted: Compacted, worker: CleanerProcess) -> None:
    fill(compacted)
    for _ in range(2):
        assert not compacted.compact(killing(worker))
        assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)
        assert not list(compacted.path.glob("t-0/*.cleaned"))
    assert compacted.compact(worker.clean)
    assert worker.deaths == 2
    assert [value for _, _, value in compacted.left()] == [b"56", b"57", b"58", b"59"]


def test_a_successful_round_resets_the_count_of_deaths(compacted: Compacted, worker: CleanerProcess) -> None:
    for clean in (killing(worker), killing(worker), worker.clean, killing(worker), killing(worker)):
        fill(compacted)
        compacted.compact(clean)
    assert worker.deaths == 4
    assert compacted.cleaner.uncleanable(compacted.log_dir) == (0, 0)


def test_a_log_is_uncleanable_after_three_deaths_of_its_worker(compacted: Compacted, worker: CleanerProcess) -> None:
    fill(compacted)
    for _ in range(3):
        assert not compacted.compact(killing(worker))
    assert (worker.deaths, compacted.cleaner.uncleanable(compacted.log_dir)[0]) == (3, 1)
    assert not compacted.compact(worker.clean)


def test_an_overdue_log_is_compacted_at_the_priority_of_the_broker(
    compacted: Compacted, worker: CleanerProcess
) -> None:
    fill(compacted)
    assert compacted.compact(worker.clean)
    first = worker.pid
    fill(compacted)
    compacted.log.configure(replace(compacted.log.config, max_compaction_lag_ms=1))
    compacted.clock.advance(10)
    assert compacted.compact(worker.clean)
    assert worker.pid is not None
    assert worker.pid != first
    assert os.sched_getscheduler(worker.pid) == os.SCHED_OTHER
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == OWN_NICENESS


_BROKER = """
import os, signal, sys
from odradek.broker.storage.compaction.cleaner_process import CleanerProcess
from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaning_job import CleaningJob, SegmentToClean
worker = CleanerProcess()
empty = SegmentToClean(0, 0, 0, 0, 0)
job = CleaningJob("", [empty], 0, 0, [], {}, 0, 0, 1, 1, 1, 65536, 0.9, float("inf"), False)
list(worker.clean(job, CleaningState()))
os.kill(worker.pid, signal.SIGSTOP)
os.waitpid(worker.pid, os.WUNTRACED)
print(worker.pid, flush=True)
sys.stdin.read()
"""


def test_a_worker_does_not_outlive_a_broker_that_is_killed() -> None:
    """Not even a stopped worker, which cannot check whether the broker is alive."""
    broker = subprocess.Popen([sys.executable, "-c", _BROKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert broker.stdout is not None
    pid = int(broker.stdout.readline())
    handle = os.pidfd_open(pid)
    try:
        broker.kill()
        broker.communicate()
        ending = select.poll()  # select takes descriptors below 1,024 only
        ending.register(handle, select.POLLIN)
        assert ending.poll(30_000)  # it has ended
    finally:
        os.close(handle)
