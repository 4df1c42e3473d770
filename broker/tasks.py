"""Background work that is looked after: periodic functions, and tasks whose failure must not go unnoticed.

A periodic function that raises is logged and runs again at its next turn: a failed checkpoint must not end all
checkpoints. A task that was meant to run for ever and ends by an exception cannot be repaired here: it is reported to
`on_failure`, and the broker stops. `stop` cancels everything and waits for it, so that nothing outlives the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

Chore = Callable[[], Awaitable[object] | None]


class BackgroundTasks:
    """The background work of one broker. Create it on the running loop; `stop` once, at the end."""

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine until it returns or `stop`; an exception out of it goes to `on_failure(name, error)`."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def every(self, name: str, interval_ms: int, function: Chore, *, first_ms: int | None = None) -> asyncio.Task[None]:
        """Call `function` again and again, `interval_ms` after the start, and after it ended the last time.

        The first call comes `first_ms` after the start, if that is given.
        """
        first_ms = interval_ms if first_ms is None else first_ms
        return self.start(name, self._repeat(name, first_ms / 1000, interval_ms / 1000, function))

    async def stop(self) -> None:
        """Cancel everything and wait until it has ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def _repeat(name: str, first: float, interval: float, function: Chore) -> None:
        pause = first
        while True:
            await asyncio.sleep(pause)
            pause = interval
            try:
                result = function()
                if result is not None:
                    await result
            except Exception as error:  # noqa: BLE001 - whatever it is, it is logged and tried again
                _LOG.exception("background task failed", error, task=name, again_in_seconds=interval)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(task.get_name(), error)
