"""Disk threads without threads: work is done at once, at a later virtual time, and its end is reported after that.

A process that dies, or a machine that loses power, does not do the work that was still queued. Writers keep the order
of their work; other work has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from odradek.broker.replication.appends.disk_threads import WRITER_THREADS, DiskThreads
from odradek.broker.replication.appends.writer_thread import OnEnd, WriterThread, end_future
from tests.simulation.hosts import Host
from tests.simulation.node_loop import NodeLoop

P = ParamSpec("P")
T = TypeVar("T")

_USUAL_SECONDS = 0.004


class Disk:
    """The speed of a host's disk; `slowness` is the most seconds that work takes longer."""

    def __init__(self, host: Host) -> None:
        self.slowness = 0.0
        self._draw = host.world.draw

    def seconds(self) -> float:
        """Draw the time that one piece of work takes."""
        return self._draw.uniform(0, _USUAL_SECONDS) + (self._draw.uniform(0, self.slowness) if self.slowness else 0)


class SimulatedWriter(WriterThread):
    """A writer in virtual time."""

    def __init__(self, loop: NodeLoop, disk: Disk) -> None:
        super().__init__(loop, "")
        self._disk = disk
        self._simulated_loop = loop
        self._last = 0.0

    def submit(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        self.waiting += 1
        loop = self._simulated_loop
        self._last = max(self._last, loop.time() + self._disk.seconds())
        loop.call_at(self._last, self._do, work, on_end)

    def _do(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        result, error = _outcome(work)
        self._simulated_loop.call_soon(self._report, on_end, result, error)

    def _report(self, on_end: OnEnd, result: Any, error: BaseException | None) -> None:
        self.waiting -= 1
        on_end(result, error)

    async def close(self) -> None:
        await self.run(_nothing)


class SimulatedThreads(DiskThreads):
    """The threads of one process, in virtual time."""

    def __init__(self, loop: NodeLoop, disk: Disk) -> None:
        super().__init__(loop)
        self._simulated_loop = loop
        self._disk_speed = disk
        self._simulated_writers = [SimulatedWriter(loop, disk) for _ in range(WRITER_THREADS)]

    def least_busy_writer(self) -> WriterThread:
        return min(self._simulated_writers, key=lambda writer: writer.waiting)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        answer: asyncio.Future[T] = self._simulated_loop.create_future()
        work = partial(function, *args, **kwargs)
        self._simulated_loop.call_later(self._disk_speed.seconds(), self._run, work, answer)
        return answer

    def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        return self.run(function, *args, **kwargs)

    compile = match = search

    def _run(self, work: Callable[[], T], answer: asyncio.Future[T]) -> None:
        self._simulated_loop.call_soon(end_future, answer, *_outcome(work))

    async def close(self) -> None:
        for writer in self._simulated_writers:
            await writer.close()


def _outcome(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - the caller gets it, as from a thread
        return None, error


def _nothing() -> None:
    """Do nothing, in turn."""
