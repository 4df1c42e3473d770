"""An event loop with virtual time: its clock stands still while there is work, and else jumps to the next timer.

Hours pass in microseconds, and all runs have the same order. If there is neither work nor a timer, the test can never
continue: that is an error, where a real loop would hang. So is a task that spins: `MOST_TURNS` at one moment, or
`MOST_SECONDS` of the processor in one turn. A task of the client that is left when the test ends is an error, too.
"""

from __future__ import annotations

import asyncio
import functools
import random
import selectors
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

MOST_TURNS = 200_000
"""The turns of the loop at one moment of virtual time."""
MOST_SECONDS = 30.0
"""The processor's time for one turn."""
_TURNS_TO_END = 100
_CLIENT = Path(__file__).resolve().parents[2] / "client"


class NothingWillHappenError(Exception):
    """The test waits, and no task or timer can end that."""


class SpinningError(Exception):
    """A task goes on without waiting for anything."""


class _JumpingSelector(selectors.BaseSelector):
    """Selects without waiting, and moves the clock by the requested timeout."""

    def __init__(self) -> None:
        self.now = 0.0
        self._turns = 0
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        _limit_turn()
        ready = self._real.select(0)
        self._turns += 1
        if not ready:
            if timeout is None:
                raise NothingWillHappenError
            if timeout > 0:
                self.now += timeout
                self._turns = 0
        if self._turns > MOST_TURNS:
            self._turns = 0
            raise SpinningError(f"{MOST_TURNS} turns at {self.now} s")
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


def _limit_turn() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGVTALRM) is _stop_turn:
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)


def _stop_turn(_number: int, _frame: FrameType | None) -> None:
    raise SpinningError(f"one turn took {MOST_SECONDS} s of the processor")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def tasks_of_client() -> list[asyncio.Task[Any]]:
    """The tasks whose coroutines are the client's."""
    coroutines = {task: task.get_coro() for task in asyncio.all_tasks()}
    return [
        task
        for task, coroutine in coroutines.items()
        if (code := getattr(coroutine, "cr_code", None)) is not None
        and Path(code.co_filename).resolve().is_relative_to(_CLIENT)
    ]


async def _without_leak(test: Coroutine[Any, Any, None]) -> None:
    await test
    await check_no_task_is_left()


async def check_no_task_is_left() -> None:
    """Give the tasks of the client some turns to end, and raise an AssertionError for those that do not."""
    for _ in range(_TURNS_TO_END):
        if not tasks_of_client():
            return
        await asyncio.sleep(0)
    raise AssertionError(f"the test leaves {tasks_of_client()}")


def simulated(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in virtual time; it may have fixtures. The client's chances are the same in each run."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        random.seed(test.__qualname__)
        before = signal.signal(signal.SIGVTALRM, _stop_turn)
        try:
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                runner.run(_without_leak(test(*args, **kwargs)))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    return run
