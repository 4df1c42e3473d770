from __future__ import annotations

import asyncio
import gc
import logging
import sys
from typing import Any

import pytest

from odradek.broker import tasks
from odradek.broker.tasks import BackgroundTasks
from odradek.client.network import outcome
from tests.eager_tasks import eager_task


class Failures(list[tuple[str, BaseException]]):
    def __call__(self, name: str, error: BaseException) -> None:
        self.append((name, error))


async def test_a_periodic_function_runs_again_and_again_until_stopped() -> None:
    tasks = BackgroundTasks(Failures())
    runs = 0
    enough = asyncio.Event()

    def count() -> None:
        nonlocal runs
        runs += 1
        if runs == 3:
            enough.set()

    tasks.every("counting", 1, count)
    await asyncio.wait_for(enough.wait(), 60)
    await tasks.stop()

    assert runs == 3
    assert len(tasks) == 0


async def test_a_periodic_function_may_be_asynchronous() -> None:
    tasks = BackgroundTasks(Failures())
    ran = asyncio.Event()

    async def run() -> None:
        ran.set()

    tasks.every("running", 1, run)
    await asyncio.wait_for(ran.wait(), 60)
    await tasks.stop()


async def test_a_periodic_function_that_fails_is_logged_and_runs_again(caplog: pytest.LogCaptureFixture) -> None:
    failures = Failures()
    tasks = BackgroundTasks(failures)
    runs = 0
    recovered = asyncio.Event()

    def fail_once() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise ValueError("once")
        recovered.set()

    with caplog.at_level(logging.ERROR):
        tasks.every("flaky", 1, fail_once)
        await asyncio.wait_for(recovered.wait(), 60)
    await tasks.stop()

    assert "flaky" in caplog.text
    assert failures == []


async def test_a_task_that_ends_by_an_exception_is_reported() -> None:
    failures = Failures()
    tasks = BackgroundTasks(failures)

    async def fail() -> None:
        raise ValueError("broken")

    await asyncio.wait({tasks.start("worker", fail())})
    await asyncio.sleep(0)

    [(name, error)] = failures
    assert name == "worker"
    assert str(error) == "broken"
    await tasks.stop()


async def test_stopping_cancels_what_runs_and_reports_nothing() -> None:
    failures = Failures()
    tasks = BackgroundTasks(failures)
    task = tasks.start("waiting", asyncio.Event().wait())  # type: ignore[arg-type]

    await tasks.stop()

    assert task.cancelled()
    assert failures == []
    assert len(tasks) == 0


async def test_a_stop_in_the_turn_in_which_a_task_fails_returns_after_the_failure_is_reported() -> None:
    failures = Failures()
    tasks = BackgroundTasks(failures)
    stopping: list[asyncio.Task[list[str]]] = []

    async def stop() -> list[str]:
        await tasks.stop()
        return [name for name, _ in failures]

    async def fail() -> None:
        stopping.append(asyncio.create_task(stop()))
        raise ValueError("lost")

    await asyncio.wait({tasks.start("failing", fail())})

    assert await stopping[0] == ["failing"]
    assert len(tasks) == 0


if sys.version_info >= (3, 12):

    async def test_no_task_runs_before_a_stop_can_cancel_it() -> None:
        asyncio.get_running_loop().set_task_factory(eager_task)
        tasks = BackgroundTasks(Failures())

        async def stop_and_stay() -> None:
            stopping.append(asyncio.create_task(tasks.stop()))
            await asyncio.Event().wait()

        stopping: list[asyncio.Task[None]] = []
        task = tasks.start("stays", stop_and_stay())
        await asyncio.wait({task}, timeout=10)
        await stopping[0]

        assert task.cancelled()
        assert len(tasks) == 0


OUTCOMES_OF = pytest.mark.parametrize("outcome_of", [tasks.outcome_of, outcome.outcome_of], ids=["broker", "client"])


@OUTCOMES_OF
async def test_an_outcome_is_that_of_the_future_also_if_it_is_there(outcome_of: Any) -> None:
    loop = asyncio.get_running_loop()
    good, bad, cancelled = loop.create_future(), loop.create_future(), loop.create_future()
    waiting = [asyncio.ensure_future(outcome_of(each)) for each in (good, bad, cancelled)]
    await asyncio.sleep(0)
    good.set_result(1)
    bad.set_exception(OSError(5))
    cancelled.cancel()
    await asyncio.wait(waiting)
    assert waiting[0].result() == await outcome_of(good) == 1
    assert waiting[1].exception() is bad.exception()
    assert waiting[2].cancelled()
    with pytest.raises(OSError, match="5"):
        await outcome_of(bad)


@OUTCOMES_OF
async def test_a_future_goes_on_without_its_cancelled_waiter_and_may_fail_then_unlogged(outcome_of: Any) -> None:
    loop = asyncio.get_running_loop()
    logged: list[Any] = []
    loop.set_exception_handler(lambda _, context: logged.append(context))
    running: asyncio.Future[None] = loop.create_future()
    waiting = asyncio.ensure_future(outcome_of(running))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not running.done()
    running.set_exception(OSError())
    await asyncio.sleep(0)
    del running
    gc.collect()
    assert not logged
