"""The pauses of compaction while the broker answers requests, and while it is idle."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from odradek.broker.storage.compaction.pace import Pace, scheduled_turns
from odradek.broker.testing.clock import ManualClock


class Worker:
    """Compaction by a clock that moves while it works (1 ms each) and rests; the broker gets `turns_a_second`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.turns_a_second = 0.0
        self.turns = 0.0
        self.worked = 0
        self.rests: list[float] = []
        self.pace = Pace(self.clock, lambda: int(self.turns), self._rest)

    def work(self, milliseconds: int, step_ms: int = 1) -> None:
        for _ in range(0, milliseconds, step_ms):
            self._pass(step_ms)
            self.worked += step_ms
            self.pace.step()

    def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self._pass(round(seconds * 1000))

    def _pass(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.turns += self.turns_a_second * milliseconds / 1000


@pytest.fixture
def worker() -> Worker:
    return Worker()


def seconds_of(clock: ManualClock, work: Callable[[], None]) -> float:
    started = clock.monotonic()
    work()
    return clock.monotonic() - started


def test_beside_a_busy_broker_it_works_a_quarter_of_the_time(worker: Worker) -> None:
    worker.turns_a_second = 500
    assert seconds_of(worker.clock, lambda: worker.work(1000)) == pytest.approx(4, rel=0.01)


def test_beside_an_idle_broker_it_does_not_rest(worker: Worker) -> None:
    worker.turns_a_second = 2
    worker.work(1000)
    worker.rests.clear()
    worker.work(1000)
    assert worker.rests == []


def test_it_rests_within_a_tenth_of_a_second_of_new_requests(worker: Worker) -> None:
    worker.work(1000)
    worker.rests.clear()
    worker.turns_a_second = 500
    worker.work(100)
    assert worker.rests


def test_short_work_needs_no_rest(worker: Worker) -> None:
    worker.turns_a_second = 500
    worker.pace.step()
    assert worker.rests == []


def test_a_rest_is_proportional_to_the_work_and_bounded(worker: Worker) -> None:
    worker.turns_a_second = 500
    worker.work(10, step_ms=10)
    worker.work(5000, step_ms=5000)
    assert worker.rests == [pytest.approx(0.03), 0.05]


def test_the_turns_of_a_working_process_are_counted() -> None:
    before = scheduled_turns(os.getpid())
    os.sched_yield()
    assert scheduled_turns(os.getpid()) >= before > 0


def test_there_are_no_turns_where_the_system_does_not_count_them() -> None:
    assert scheduled_turns(-1) == 0
