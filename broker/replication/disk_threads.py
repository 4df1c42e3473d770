"""The three kinds of threads that keep slow disk work off the event loop.

| threads | work | order |
|---|---|---|
| writers (2) | appends of 64 KiB and more, and what must follow them in a partition | first in, first out, in each |
| search (2) | offsets by time where that means to decode more than 64 KiB | first in, first out |
| disk (up to 16) | fsync, checkpoints, opening and deleting directories | none |

Appends to one partition must keep their order, so those that wait at the same time all go to one writer. Syncs of
several partitions run side by side. Threads start when there is work for the first time. Results come back to the loop;
who does not wait for them any more (the client has gone) does not take work back that has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import ParamSpec, TypeVar

from odradek.broker.replication.writer_thread import WriterThread

P = ParamSpec("P")
T = TypeVar("T")

# They wait for the disk, and a journaling file system syncs those that wait together at once. With flush.messages=1 and
# 16 partitions, 16 threads acknowledge a fifth more than 4 do where an fsync takes 0.2 ms, and twice as much where it
# takes 5 (`benchmarks.durability`).
DISK_THREADS = 16

# The first write of a page of memory is dear, and takes a core of its own: batches of 900 KB over four connections go
# a third faster with two writers than with one on two cores, those of 256 KiB as fast; with three as with two.
WRITER_THREADS = 2

# As few, because each of them and of the writers may hold the records of a batch that is decompressed, up to
# `max_decompressed_size` bytes and, while pieces of it are joined, twice that: this bounds them for all connections.
SEARCH_THREADS = 2

DECODED_IN_A_TURN = 10_000
"""Records that appends may make the loop decode in one turn, half a microsecond each."""
_BATCH_IN_RECORDS = 200  # what decompressing a batch of 64 KiB costs, in records

_WAITING = attrgetter("waiting")


class DiskThreads:
    """The threads of one broker. `close` waits for everything that was handed over."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._decodable = DECODED_IN_A_TURN
        self._writers = [WriterThread(loop, f"writer-{number}") for number in range(WRITER_THREADS)]
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="disk")
        self._search = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="search")

    def create_future(self) -> asyncio.Future[T]:
        """Make a future of the loop that the threads report to."""
        return self._loop.create_future()

    def may_decode_on_loop(self, records_count: int) -> bool:
        """Whether the loop may decode a batch of so many records in this turn, besides those it was let before."""
        left = self._decodable - records_count - _BATCH_IN_RECORDS
        if left < 0:
            return False
        if self._decodable == DECODED_IN_A_TURN:
            self._loop.call_soon(self._begin_turn)
        self._decodable = left
        return True

    def _begin_turn(self) -> None:
        self._decodable = DECODED_IN_A_TURN

    def least_busy_writer(self) -> WriterThread:
        """The writer with the least to do. Who has given it something for a log gives it all that must follow."""
        return min(self._writers, key=_WAITING)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run other disk work on some thread."""
        return asyncio.wrap_future(self._disk.submit(function, *args, **kwargs), loop=self._loop)

    def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a search in a log that may decode large batches."""
        return asyncio.wrap_future(self._search.submit(function, *args, **kwargs), loop=self._loop)

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
        # A writer waits for the disk threads; so the loop never does.
        await self._writers[0].run(self._search.shutdown)
        await self._writers[0].run(self._disk.shutdown)
        for writer in self._writers:
            await writer.close()
