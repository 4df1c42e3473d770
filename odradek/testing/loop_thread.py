"""An event loop on a thread of its own, which runs the clients of a handle for tests with and without a loop.

A loop of uvloop has the time of libuv, which neither freezegun nor time-machine replaces: time-outs pass while the time
of the test is frozen.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class LoopThread:
    """A running event loop until `close`. All methods may be called on any thread, except where they say so."""

    def __init__(self, name: str) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, from another thread, and return its result. Raises what it raises."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C among others; without effect if it was the coroutine's own error
            future.cancel()
            raise

    async def run_here(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, from this loop or another one, and return its result; cancelled with it."""
        if asyncio.get_running_loop() is self._loop:
            return await coroutine
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def close(self) -> None:
        """Cancel what still runs, and end the loop and its thread. A second call does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()
