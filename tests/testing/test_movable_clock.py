from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import freezegun
import pytest
import time_machine

from odradek.broker.clock import SystemClock
from odradek.broker.tasks import BackgroundTasks
from odradek.broker.testing.movable_clock import MOST_RUNS, MovableClock

HOUR = 3600.0
LONG_AGO = datetime(2001, 2, 3, tzinfo=UTC)


class Follower:
    """Records what a clock tells it. `busy` is how often it says that it is, until it has settled."""

    def __init__(self) -> None:
        self.announced: list[float] = []
        self.moves: list[float] = []
        self.busy = 0

    def begin(self) -> None:
        """Do nothing."""

    def before_move(self, seconds: float) -> None:
        self.announced.append(seconds)

    def moved(self, seconds: float) -> None:
        self.moves.append(seconds)

    @property
    def is_busy(self) -> bool:
        return self.busy > 0

    async def settled(self) -> None:
        await asyncio.sleep(0)
        self.busy -= 1


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


async def test_both_clocks_move_by_exactly_what_was_said_and_go_on(clock: MovableClock) -> None:
    monotonic, time_ms, boot_time = clock.monotonic(), clock.time_ms(), clock.boot_time()

    await clock.advance(hours=2, seconds=1)
    await clock.advance(timedelta(minutes=1))

    passed = clock.monotonic() - monotonic
    assert 2 * HOUR + 61 <= passed < 2 * HOUR + 61 + 60
    assert abs(clock.time_ms() - time_ms - passed * 1000) < 1000
    assert clock.boot_time() - boot_time < 60  # leases of a metadata store are of the real world
    before = clock.monotonic()
    while clock.monotonic() == before:
        pass


def test_the_time_of_day_is_the_machines_until_it_is_moved(clock: MovableClock) -> None:
    before = SystemClock().time_ms()
    assert before - 1 <= clock.time_ms() <= SystemClock().time_ms() + 1


async def test_deadlines_come_in_their_order_each_at_its_own_time(clock: MovableClock) -> None:
    begin, seen = clock.monotonic(), []

    def fire(name: str) -> None:
        seen.append((name, round(clock.monotonic() - begin, 2)))

    clock.timers().call_later(30, fire, "third")
    clock.client_timers().call_later(10, fire, "first")
    clock.timers().call_at(begin + 20, fire, "second")
    clock.timers().call_later(61, fire, "not yet")

    await clock.advance(minutes=1)

    assert [name for name, _ in seen] == ["first", "second", "third"]
    assert [when for _, when in seen] == pytest.approx([10, 20, 30], abs=0.5)


async def test_time_stands_still_at_a_deadline_until_what_it_started_is_done(clock: MovableClock) -> None:
    seen: list[float] = []

    async def two_turns() -> None:
        seen.append(clock.monotonic())
        await asyncio.sleep(0)
        seen.append(clock.monotonic())

    tasks = BackgroundTasks(lambda _, error: None)
    begin = clock.monotonic()
    clock.timers().call_at(begin + 10, lambda: tasks.start("work", two_turns()))
    clock.timers().call_at(begin + 10.5, lambda: seen.append(clock.monotonic()))

    await clock.advance(seconds=20)

    assert seen == [begin + 10, begin + 10, begin + 10.5]


async def test_a_deadline_may_set_the_next_which_is_due_in_the_same_move(clock: MovableClock) -> None:
    seen: list[float] = []
    begin = clock.monotonic()

    def fire() -> None:
        seen.append(clock.monotonic() - begin)
        clock.timers().call_later(20, fire)

    clock.timers().call_at(begin + 20, fire)

    await clock.advance(seconds=70)

    assert seen == pytest.approx([20, 40, 60])


async def test_a_cancelled_deadline_never_comes(clock: MovableClock) -> None:
    fired: list[str] = []
    clock.timers().call_later(10, fired.append, "cancelled").cancel()
    await clock.advance(hours=1)
    assert fired == []


async def test_what_clients_are_given_during_a_move_counts_from_its_end(clock: MovableClock) -> None:
    fired: list[str] = []
    clock.timers().call_later(10, lambda: clock.client_timers().call_later(10, fired.append, "client"))
    clock.timers().call_later(10, lambda: clock.timers().call_later(10, fired.append, "broker"))

    await clock.advance(hours=1)
    assert fired == ["broker"]
    await clock.advance(seconds=10)

    assert fired == ["broker", "client"]


@pytest.mark.parametrize("arguments", [{"seconds": -1}, {"hours": 1, "minutes": -61}])
async def test_time_does_not_run_backwards(clock: MovableClock, arguments: dict[str, float]) -> None:
    before = clock.monotonic()
    with pytest.raises(ValueError, match="backwards"):
        await clock.advance(**arguments)
    with pytest.raises(ValueError, match="backwards"):
        await clock.advance(timedelta(**arguments))
    assert clock.monotonic() - before < 60


async def test_a_timedelta_and_its_arguments_are_too_much(clock: MovableClock) -> None:
    with pytest.raises(TypeError):
        await clock.advance(timedelta(1), hours=1)
    with pytest.raises(TypeError):
        await clock.advance(months=1)


async def test_sleepers_and_real_time(clock: MovableClock) -> None:
    await asyncio.wait_for(clock.sleep(0.001), 60)  # real time is enough
    sleeping = asyncio.ensure_future(clock.sleep(HOUR))
    await asyncio.sleep(0)
    await clock.advance(minutes=59)
    assert not sleeping.done()
    await clock.advance(minutes=1)
    assert sleeping.done()


# ----------------------------------------------------------------------------------------------------- periodic work


async def test_periodic_work_runs_at_its_interval_and_at_the_end(clock: MovableClock) -> None:
    begin, runs = clock.monotonic(), []
    tasks = BackgroundTasks(lambda _, error: None, clock.pause)
    tasks.every("counting", 600_000, lambda: runs.append(clock.monotonic() - begin))
    await asyncio.sleep(0)

    await clock.advance(minutes=35)

    assert runs == pytest.approx([600, 1200, 1800, 2100], abs=1)
    await clock.advance(minutes=9)  # 10 minutes after the last run it is due again, and not yet
    assert runs[4:] == pytest.approx([2640], abs=1)
    await tasks.stop()


async def test_periodic_work_does_not_run_at_every_interval_of_a_long_move(clock: MovableClock) -> None:
    runs: dict[str, list[float]] = {"often": [], "seldom": []}
    tasks = BackgroundTasks(lambda _, error: None, clock.pause)
    tasks.every("often", 1_000, lambda: runs["often"].append(clock.monotonic()))
    tasks.every("seldom", 86_400_000, lambda: runs["seldom"].append(clock.monotonic()))
    await asyncio.sleep(0)

    await clock.advance(days=30)

    assert MOST_RUNS <= len(runs["often"]) <= MOST_RUNS + 2
    assert 30 <= len(runs["seldom"]) <= 31
    assert runs["often"][-1] == runs["seldom"][-1]  # at the end
    await tasks.stop()


async def test_a_move_waits_for_periodic_work_in_progress(clock: MovableClock) -> None:
    tasks = BackgroundTasks(lambda _, error: None, clock.pause)
    loop, seen = asyncio.get_running_loop(), []

    async def work_in_a_thread() -> None:
        begin = clock.monotonic()
        await loop.run_in_executor(None, time.clock_gettime, time.CLOCK_MONOTONIC)
        seen.append(clock.monotonic() - begin)

    tasks.every("work", 60_000, work_in_a_thread)
    await asyncio.sleep(0)

    await clock.advance(minutes=3)

    assert seen == [0, 0, 0, 0]  # each minute, and the end: the clock stood still while they ran
    await tasks.stop()


async def test_periodic_work_that_fails_or_ends_does_not_hold_a_move_up(clock: MovableClock) -> None:
    tasks = BackgroundTasks(lambda _, error: None, clock.pause)

    def fail() -> None:
        raise ValueError("broken")

    async def pause_once() -> None:
        await clock.pause(1)

    tasks.every("failing", 60_000, fail)
    tasks.start("ending", pause_once())
    await asyncio.sleep(0)

    await clock.advance(hours=1)

    assert len(tasks) == 1
    await tasks.stop()


async def test_work_that_never_ends_is_named() -> None:
    clock, ended = MovableClock(patience_seconds=0.01), asyncio.Event()
    tasks = BackgroundTasks(lambda _, error: None, clock.pause)
    tasks.every("endless", 60_000, ended.wait)
    await asyncio.sleep(0)
    begin = clock.monotonic()

    with pytest.raises(TimeoutError, match="endless"):
        await clock.advance(hours=1)

    assert 59 < clock.monotonic() - begin < 120  # it goes on from where it was
    ended.set()
    await clock.advance(hours=1)
    await tasks.stop()


async def test_a_move_waits_for_the_threads_of_a_follower_and_informs_it(clock: MovableClock) -> None:
    follower = Follower()
    clock.attach(follower)
    clock.timers().call_later(10, setattr, follower, "busy", 2)

    await clock.advance(seconds=30)

    assert (follower.busy, follower.announced) == (0, [30])
    assert follower.moves == pytest.approx([10, 20], abs=0.5)
    clock.detach(follower)
    await clock.advance(seconds=30)
    assert follower.announced == [30]


async def test_two_moves_at_once_follow_each_other(clock: MovableClock) -> None:
    begin = clock.monotonic()
    await asyncio.gather(clock.advance(hours=1), clock.advance(hours=2))
    assert 3 * HOUR <= clock.monotonic() - begin < 3 * HOUR + 60


async def test_a_move_that_is_cancelled_stops_where_it_is(clock: MovableClock) -> None:
    begin = clock.monotonic()
    moving = asyncio.current_task()
    assert moving is not None
    clock.timers().call_later(60, moving.cancel)

    with pytest.raises(asyncio.CancelledError):
        await clock.advance(hours=1)
    moving.uncancel()

    assert 60 <= clock.monotonic() - begin < 120
    await asyncio.wait_for(clock.sleep(0.001), 60)  # real time goes on


# ------------------------------------------------------------------------------------------------- loops, frozen time


async def test_another_loop_is_refused_as_long_as_the_first_is_open(clock: MovableClock) -> None:
    clock.timers()

    async def use() -> None:
        clock.timers()

    with pytest.raises(RuntimeError, match="event loop"):
        await asyncio.to_thread(asyncio.run, use())


def test_a_clock_outlives_its_loop(clock: MovableClock) -> None:
    fired: list[str] = []

    async def use(name: str) -> None:
        clock.timers().call_later(10, fired.append, name)
        if name == "second":
            await clock.advance(hours=1)

    asyncio.run(use("first"))
    asyncio.run(use("second"))

    assert fired == ["second"]


FREEZERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "freezegun": lambda: freezegun.freeze_time(LONG_AGO),
    "time-machine": lambda: time_machine.travel(LONG_AGO, tick=False),
}


@pytest.mark.parametrize("freezer", FREEZERS)
def test_a_frozen_time_does_not_stop_the_clock(freezer: str) -> None:
    before = SystemClock().time_ms()
    clock = MovableClock()
    with FREEZERS[freezer]():
        assert abs(time.time() - LONG_AGO.timestamp()) < 60
        begin, made_while_frozen = clock.monotonic(), MovableClock()
        while clock.monotonic() == begin:
            pass
        for each in (clock, made_while_frozen):
            assert before - 1000 <= each.time_ms() < before + 60_000
