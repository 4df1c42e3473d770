"""Background tasks: periodic functions, and tasks whose failure stops the broker.

A periodic function that raises is logged and runs again after its interval: one failed checkpoint must not end all
checkpoints. A task that should run until the stop but raises cannot be repaired here: the error is passed to
`on_failure`, and the broker stops. `stop` cancels all tasks and waits for them, so that none outlives the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

T = TypeVar("T")

Periodic = Callable[[], Awaitable[object] | None]


def create_task(coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
    """Create a task that begins in the next turn of the running loop, after its creator has stored it.

    The loop's own `create_task` may run the coroutine at once: a program can set an eager task factory (Python 3.12).
    """
    return asyncio.Task(coroutine, loop=asyncio.get_running_loop(), name=name)


async def outcome_of(running: asyncio.Future[T]) -> T:
    """Wait for a future, which goes on if the caller is cancelled, and return its result or raise its error.

    Not `asyncio.shield`: from Python 3.14 on it logs an error, with a traceback, that comes after the cancellation.
    """
    if not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:
            running.add_done_callback(_retrieve)
            raise
    return running.result()


def _retrieve(done: asyncio.Future[Any]) -> None:
    """An error that nobody waits for any more is not logged."""
    if not done.cancelled():
        done.exception()


class BackgroundTasks:
    """The background tasks of one broker. Create it on the running loop; call `stop` once, at the end.

    `pause` waits between two runs of a periodic function, for seconds: `waiting.pause`, for a clock.
    """

    def __init__(
        self,
        on_failure: Callable[[str, BaseException], None],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._on_failure = on_failure
        self._pause = pause
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order: a simulation repeats what a stop does

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine until it returns or until `stop`; its exception is passed to `on_failure(name, error)`."""
        task = create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def every(
        self, name: str, interval_ms: int, function: Periodic, *, first_ms: int | None = None
    ) -> asyncio.Task[None]:
        """Call `function` repeatedly: `interval_ms` after the start, and `interval_ms` after each call has ended.

        If `first_ms` is given, the first call comes that long after the start.
        """
        first_ms = interval_ms if first_ms is None else first_ms
        return self.start(name, self._repeat(name, first_ms / 1000, interval_ms / 1000, function))

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)  # not `gather`, which may return before the callbacks of finished tasks ran

    async def _repeat(self, name: str, first: float, interval: float, function: Periodic) -> None:
        seconds = first
        while True:
            await self._pause(seconds)
            seconds = interval
            try:
                result = function()
                if result is not None:
                    await result
            except Exception as error:  # noqa: BLE001 - any error is logged, and the function runs again
                _LOG.exception("background task failed", error, task=name, again_in_seconds=interval)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(task.get_name(), error)
