"""The two kinds of threads that keep slow disk work off the event loop.

| thread | work | order |
|---|---|---|
| writer (one) | appends of 64 KiB and more, and whatever must follow them in a partition | first in, first out |
| disk (up to 16) | fsync, checkpoints, opening and deleting directories | none |

One writer, because appends to one partition must keep their order and because page-cache writes of one machine gain
nothing from more. Syncs of several partitions run side by side. Threads start when there is work for the first time.
Results come back to the loop as futures; cancelling one of them (the client has gone) does not take work back that has
begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# They wait for the disk, and a journaling file system syncs those that wait together at once. With flush.messages=1 and
# 16 partitions, 16 threads acknowledge a fifth more than 4 do where an fsync takes 0.2 ms, and twice as much where it
# takes 5 (`benchmarks.durability`).
DISK_THREADS = 16


class DiskThreads:
    """The threads of one broker. `close` waits for everything that was handed over."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="disk")

    def create_future(self) -> asyncio.Future[T]:
        """Make a future of the loop that the threads report to."""
        return self._loop.create_future()

    def write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run an append on the writer thread, after all those handed over before."""
        return asyncio.wrap_future(self._writer.submit(function, *args, **kwargs), loop=self._loop)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run other disk work on some thread."""
        return asyncio.wrap_future(self._disk.submit(function, *args, **kwargs), loop=self._loop)

    async def run_to_end(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `run`; whoever is cancelled while he waits goes on when the work has ended, and not before."""
        running = self.run(function, *args, **kwargs)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise

    async def close(self) -> None:
        """Wait until all work is done and the threads have ended."""
        # The writer, which is idle after this, waits for the others; so the loop never does.
        await self.write(self._disk.shutdown)
        self._writer.shutdown()
