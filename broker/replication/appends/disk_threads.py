"""The threads that keep slow work off the event loop: that of the disk, and clients' regular expressions.

| threads | work | order |
|---|---|---|
| writers (2) | appends of 128 KiB and more, and work that must follow them | first in, first out, in each thread |
| search (2) | offsets by time, if more than 64 KiB must be decoded | first in, first out |
| disk (up to 16) | fsync, checkpoints, opening and deleting directories | none |
| compile (1) | a client's regular expression is compiled: 12 ms at most; no other thread runs | first in, first out |
| match (1) | it is matched with names, perhaps for minutes, while other threads run | first in, first out |

Appends to one partition must keep their order, so all that wait at the same time go to the same writer. Syncs of
several partitions run side by side. A thread starts with its first work. Results return to the event loop. Cancelling
the wait for a result (the client has disconnected) does not cancel work that has started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

from odradek.broker.replication.appends.writer_thread import WriterThread
from odradek.broker.storage.disk.disk_errors import RETRY_SECONDS
from odradek.broker.tasks import outcome_of

P = ParamSpec("P")
T = TypeVar("T")

# These threads wait for the disk, and a journaling file system syncs all waiting files at once. With flush.messages=1
# and 16 partitions, 16 threads acknowledge a fifth more than 4 if an fsync takes 0.2 ms, and twice as much if it takes
# 5 ms (`benchmarks.durability`).
DISK_THREADS = 16

# The first write to a page of memory is expensive and occupies a core. On two cores, batches of 900 KB over four
# connections are a third faster with two writers than with one, batches of 256 KiB equally fast; a third adds nothing.
WRITER_THREADS = 2

# Few, because each search thread and each writer may hold the decompressed records of a batch: up to
# `max_decompressed_size` bytes, and twice that while pieces are joined. Their number bounds this for all connections.
SEARCH_THREADS = 2

DECODED_IN_A_TURN = 10_000
"""The most records that appends decode on the event loop in one turn, at half a microsecond each."""
_BATCH_IN_RECORDS = 200  # the cost of decompressing a batch of 64 KiB, as a number of records

_WAITING = attrgetter("waiting")


class DiskThreads:
    """The threads of one broker. `close` waits for all submitted work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._decodable = DECODED_IN_A_TURN
        self.writers = [WriterThread(loop, f"writer-{number}") for number in range(WRITER_THREADS)]
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="disk")
        self._search = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="search")
        self._compile = ThreadPoolExecutor(1, thread_name_prefix="compile")
        self._match = ThreadPoolExecutor(1, thread_name_prefix="match")
        self._is_closed = False
        self._timers: set[asyncio.TimerHandle] = set()
        self._running: set[asyncio.Future[Any]] | None = None  # of all but writers, once `watch` was called

    def create_future(self) -> asyncio.Future[T]:
        """Create a future of the event loop that the threads report to."""
        return self._loop.create_future()

    def retry_later(self, function: Callable[[], object]) -> None:
        """Call a function on the event loop in `RETRY_SECONDS`, unless the threads are closed before."""

        def retry() -> None:
            self._timers.discard(timer)
            function()

        timer = self._loop.call_later(RETRY_SECONDS, retry)
        self._timers.add(timer)

    def may_decode_on_loop(self, records_count: int) -> bool:
        """Return whether the event loop may decode a batch of so many records in this turn, after earlier ones."""
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
        """Return the writer with the shortest queue. Keep submitting a log's work to it until its queue is empty."""
        return min(self.writers, key=_WAITING)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run other disk work, in no particular order."""
        return self._watched(asyncio.wrap_future(self._disk.submit(function, *args, **kwargs), loop=self._loop))

    def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a search in a log, which may decode large batches."""
        return self._watched(asyncio.wrap_future(self._search.submit(function, *args, **kwargs), loop=self._loop))

    def compile(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Compile a client's regular expression, one at a time: RE2 holds the interpreter's lock."""
        return self._watched(asyncio.wrap_future(self._compile.submit(function, *args, **kwargs), loop=self._loop))

    def match(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Match clients' regular expressions."""
        return self._watched(asyncio.wrap_future(self._match.submit(function, *args, **kwargs), loop=self._loop))

    def watch(self) -> None:
        """Record from now on what the threads work on, for `is_busy` and `settled`."""
        if self._running is None:
            self._running = set()

    @property
    def is_busy(self) -> bool:
        """Whether work that was submitted has not ended; that of other threads than writers counts after `watch`."""
        return bool(self._running) or any(writer.waiting for writer in self.writers)

    async def settled(self) -> None:
        """Return when the work submitted so far has ended, whatever its outcome."""
        running: list[asyncio.Future[Any]] = list(self._running or ())
        running += [self._loop.create_task(writer.run(_nothing)) for writer in self.writers if writer.waiting]
        if running:
            await asyncio.wait(running)

    def _watched(self, running: asyncio.Future[T]) -> asyncio.Future[T]:
        if self._running is not None:
            self._running.add(running)
            running.add_done_callback(self._running.discard)
        return running

    async def run_to_end(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run disk work and wait for it. On cancellation, waits for the work to finish, then re-raises."""
        running = self.run(function, *args, **kwargs)
        try:
            return await outcome_of(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise

    async def close(self) -> None:
        """Wait until all work is done and the threads have ended. Does nothing the second time."""
        if self._is_closed:
            return
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        # A writer thread waits for the other threads to end, so that the event loop does not.
        for pool in (self._search, self._compile, self._match, self._disk):
            await self.writers[0].run(pool.shutdown)
        for writer in self.writers:
            await writer.close()


def _nothing() -> None:
    """Do nothing, in turn."""
