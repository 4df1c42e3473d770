"""A thread that executes work in the order of submission, and reports the end of each on the event loop.

```
loop ── submit(work, on_end) ──► queue ──► thread: work() ── call_soon_threadsafe ──► loop: on_end(result, error)
```

A `ThreadPoolExecutor` does the same with two futures and their locks. It takes 13 µs of processor time for each piece
of work instead of 5, and 28 instead of 20 if both threads must be woken.

The queue has no bound of its own: each connection executes one request at a time, and connections are limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

OnEnd = Callable[[Any, BaseException | None], None]
"""Called on the event loop with the result of the work, or with the exception that it raised."""


class WriterThread:
    """One thread, started by its first work. `waiting` counts the work that has not ended. For the event loop only."""

    __slots__ = ("_loop", "_name", "_thread", "_work", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._name = name
        self._work: SimpleQueue[tuple[Callable[[], Any], OnEnd] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self.waiting = 0

    def submit(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        """Execute `work` after all earlier work."""
        if self._thread is None:
            # A process that exits without `close` does not wait for the thread: the log treats that as a crash.
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self.waiting += 1
        self._work.put((work, on_end))

    async def run(self, work: Callable[[], T]) -> T:
        """Execute `work` after all earlier work, and wait for it."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self.submit(work, partial(end_future, answer))
        return await answer

    async def close(self) -> None:
        """Wait until all work is done and the thread has ended."""
        if self._thread is not None:
            await self.run(partial(self._work.put, None))
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        call_on_loop, ended = self._loop.call_soon_threadsafe, self._ended
        while (submitted := self._work.get()) is not None:
            work, on_end = submitted
            try:
                call_on_loop(ended, on_end, work(), None)
            except BaseException as error:  # noqa: BLE001 - `on_end` decides about it
                call_on_loop(ended, on_end, None, error)
            del submitted, work, on_end  # they refer to the buffer of the records, which can now be reused

    def _ended(self, on_end: OnEnd, result: Any, error: BaseException | None) -> None:
        self.waiting -= 1
        on_end(result, error)


def end_future(future: asyncio.Future[T], result: Any, error: BaseException | None) -> None:
    """Set the outcome of work on a future, unless the future was cancelled."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
