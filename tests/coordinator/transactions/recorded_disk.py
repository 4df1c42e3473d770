"""A simulated disk that keeps what a killed process, or a power cut, would leave of it at each of its changes.

```
scenario, once ─► RecordedFiles ─┬─ write n ──► its image, with a first part of the write    ─┐
                                 ├─ name n  ──► its image, without the change                 ├─► a broker on each
                                 └─ sync n  ──► its image (only power cuts differ from n − 1) ─┘   of the images
```

So a scenario runs once, and not once for each of its changes. Everything runs on the event loop: `InlineThreads` do the
work of threads a few turns later, writers in order and other work in any order.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.writer_thread import OnEnd, WriterThread, end_future
from odradek.broker.storage.disk.files import BytesLike
from tests.storage.simulated_disk import Directory, SimulatedFiles, writing

P = ParamSpec("P")
T = TypeVar("T")

_MOST_TURNS = 4


class Image(NamedTuple):
    """The disk after a stop at a change. `answered` counts the requests of the scenario that had been answered."""

    root: Directory
    answered: int
    change: int


class RecordedFiles(SimulatedFiles):
    """Files whose images are kept from `begin` to `end`: at each change that of a kill, or those of `power_cuts`."""

    def __init__(self, power_cuts: int = 0) -> None:
        super().__init__()
        self.images: list[Image] = []
        self._power_cuts = power_cuts
        self._answered: Callable[[], int] | None = None
        self._draw = random.Random(1)

    def begin(self, answered: Callable[[], int]) -> None:
        self._answered = answered

    def end(self) -> None:
        self._answered = None

    def _step(self) -> None:
        self._keep()
        super()._step()

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        """Write, and keep the image of a write that was interrupted."""
        file, whole = self._open[descriptor], bytes(data)
        before = bytes(file.data)
        file.apply(writing(whole[: self._draw.randrange(len(whole) + 1)], position))
        self._keep()
        file.data[:] = before
        file.pending.pop()
        self.operations += 1
        file.apply(writing(whole, position))

    def fsync(self, descriptor: int) -> None:
        if self._power_cuts:
            super().fsync(descriptor)
        else:
            self._open[descriptor].sync()

    def _keep(self) -> None:
        if self._answered is None:
            return
        for _ in range(self._power_cuts):
            root = self.after_power_cut(self._draw.getrandbits(32))
            self.images.append(Image(root, self._answered(), self.operations))
        if not self._power_cuts:
            self.images.append(Image(self.after_kill(), self._answered(), self.operations))


class FailingFiles(SimulatedFiles):
    """Files of a disk that fails at the change `fail_at`: once, with EIO; or it is full, for all later ones, too."""

    def __init__(self, *, is_full: bool) -> None:
        super().__init__()
        self._is_full = is_full

    def _step(self) -> None:
        super()._step()
        if self._is_full and self.fail_at is not None and self.operations > self.fail_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        try:
            super().pwrite(descriptor, data, position)
        except OSError as error:
            raise OSError(errno.ENOSPC if self._is_full else error.errno, error.strerror) from error


class _InlineWriter(WriterThread):
    """A writer whose work is done on the event loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, "")
        self._event_loop = loop

    def submit(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        self.waiting += 1
        self._event_loop.call_soon(self._work_now, work, on_end)

    def _work_now(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        self.waiting -= 1
        on_end(*_outcome(work))

    async def close(self) -> None:
        """Do what is left: nothing, because everything before has been done."""
        await self.run(lambda: None)


class InlineThreads(DiskThreads):
    """Disk threads without threads; `draw` decides in how many turns of the event loop work is done."""

    def __init__(self, loop: asyncio.AbstractEventLoop, draw: random.Random) -> None:
        super().__init__(loop)
        self._event_loop = loop
        self._draw = draw
        self._inline_writers = [_InlineWriter(loop), _InlineWriter(loop)]

    def least_busy_writer(self) -> WriterThread:
        return min(self._inline_writers, key=lambda writer: writer.waiting)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        answer: asyncio.Future[T] = self._event_loop.create_future()
        self._later(self._draw.randrange(_MOST_TURNS), partial(function, *args, **kwargs), answer)
        return answer

    def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        return self.run(function, *args, **kwargs)

    compile = match = search

    async def close(self) -> None:
        for writer in self._inline_writers:
            await writer.close()

    def _later(self, turns: int, work: Callable[[], T], answer: asyncio.Future[T]) -> None:
        if turns:
            self._event_loop.call_soon(self._later, turns - 1, work, answer)
        else:
            end_future(answer, *_outcome(work))


def _outcome(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - the caller gets it, as from a thread
        return None, error
