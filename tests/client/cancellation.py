"""Cancel a coroutine at its n-th await: with n from 1 until it ends by itself, at every await that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

MOST_AWAITS = 500
_TURNS_TO_END = 100


class _Counted:
    """Awaits `work`, counts how often it waits, and cancels the task at the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, None], at: int) -> None:
        self.awaits = 0
        self._work = work
        self._at = at

    def __await__(self) -> Generator[Any, Any, None]:
        task = asyncio.current_task()
        assert task is not None
        error: BaseException | None = None
        while True:
            try:
                waits_for = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration:
                return
            self.awaits += 1
            if self.awaits == self._at:
                asyncio.get_running_loop().call_soon(task.cancel)
            error = None
            try:
                yield waits_for
            except BaseException as raised:  # noqa: BLE001 - it belongs to the coroutine
                error = raised


async def is_cancelled(work: Coroutine[Any, Any, None], at: int) -> bool:
    """Run `work` in a task that is cancelled at its n-th await; return False if it ended before that.

    Any other exception than the cancellation is raised.
    """
    counted = _Counted(work, at)

    async def run() -> None:
        await counted

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return counted.awaits >= at


async def check_every_await(scenario: Callable[[int], Coroutine[Any, Any, bool]]) -> None:
    """Run a scenario with n = 1, 2, … until it returns False; each time it must leave no task."""
    before = asyncio.all_tasks()
    for at in range(1, MOST_AWAITS):
        goes_on = await scenario(at)
        for _ in range(_TURNS_TO_END):
            if asyncio.all_tasks() <= before:
                break
            await asyncio.sleep(0)
        assert asyncio.all_tasks() <= before, at
        if not goes_on:
            assert at > 1, "it never waited"
            return
    raise AssertionError("it never ended by itself")
