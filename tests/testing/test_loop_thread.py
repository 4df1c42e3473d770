from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from odradek.broker.testing.loop_thread import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("the loop of a test")
    yield thread
    thread.close()


async def name_of_thread() -> str:
    return threading.current_thread().name


async def fail() -> None:
    raise ValueError("because")


def test_coroutines_run_on_the_thread_and_return_or_raise(loop: LoopThread) -> None:
    assert loop.run(name_of_thread()) == "the loop of a test"
    with pytest.raises(ValueError, match="because"):
        loop.run(fail())


async def test_they_can_be_awaited_on_another_loop_and_on_its_own(loop: LoopThread) -> None:
    assert await loop.run_here(name_of_thread()) == "the loop of a test"
    assert await loop.run_here(loop.run_here(name_of_thread())) == "the loop of a test"
    with pytest.raises(ValueError, match="because"):
        await loop.run_here(fail())


def test_closing_cancels_what_runs_and_ends_the_thread(loop: LoopThread) -> None:
    ended = threading.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def start() -> asyncio.Task[None]:
        task = asyncio.create_task(wait_for_ever())
        await asyncio.sleep(0)
        return task

    task = loop.run(start())
    loop.close()
    loop.close()
    assert ended.is_set()
    assert task.cancelled()
    assert "the loop of a test" not in [thread.name for thread in threading.enumerate()]
