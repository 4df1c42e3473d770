"""The changes that a new metadata image makes to partitions: applied in order, without blocking the event loop.

```
run ─► [change, change, …] [change, …]     groups; each starts when the group before it is done
          │
          ├─ needs no disk: done when it is called
          └─ returns a coroutine: awaited, together with up to 31 others of its group
```

The changes of one group concern different partitions, so those that need the disk run side by side on threads. Changes
that need no disk, as at the start of a broker whose logs exist, are done before `run` returns. If there are many, they
run in slices, and other work of the event loop runs between the slices. `partitions` is the only user.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import KafkaError

_LOG = StructuredLogger(__name__)

_SLICE_SECONDS = 0.01
"""The longest time for which changes block the event loop."""
_CONCURRENT = 32
"""The most changes that use the disk at the same time."""

Change = Callable[[], Coroutine[Any, Any, None] | None]


class PartitionChanges:
    """The queue of changes. An exception of a change ends the broker, unless it is a KafkaError of a failed disk."""

    def __init__(self, tasks: BackgroundTasks, clock: Clock) -> None:
        self._tasks = tasks
        self._clock = clock
        self._changes: deque[tuple[int, Change]] = deque()  # each with the number of its group
        self._groups = 0
        self._task: asyncio.Task[None] | None = None
        self._settling: list[asyncio.Future[None]] = []

    def run(self, *groups: Iterable[Change]) -> None:
        """Apply the changes of these groups after all earlier ones: at once if possible, else later."""
        for group in groups:
            self._groups += 1
            self._changes.extend([(self._groups, change) for change in group])
        if self._task is None:
            self._run()

    @property
    def are_done(self) -> bool:
        """Whether all changes so far are done."""
        return self._task is None

    async def settled(self) -> None:
        """Wait until all changes so far are done. Raises the exception of the change that failed."""
        if self._task is not None:
            settling: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settling.append(settling)
            await settling

    def _run(self) -> None:
        """Apply changes until all are done, the slice is over, or some must be awaited; start a task for the rest."""
        stop_at = self._clock.monotonic() + _SLICE_SECONDS
        waiting: list[Coroutine[Any, Any, None]] = []
        group = self._changes[0][0] if self._changes else 0
        while self._changes and len(waiting) < _CONCURRENT and self._clock.monotonic() < stop_at:
            if waiting and self._changes[0][0] != group:
                break
            group, change = self._changes.popleft()
            must_wait = change()
            if must_wait is not None:
                waiting.append(must_wait)
        if waiting or self._changes:
            # They become tasks at once: a task that is cancelled before it starts would never await them.
            changing = asyncio.gather(*waiting, return_exceptions=True)
            self._task = self._tasks.start("partition changes", self._run_later(changing))
            self._task.add_done_callback(lambda _: changing.cancel())
            changing.add_done_callback(_retrieve)  # also if nobody awaits it any more
            return
        self._settle()

    async def _run_later(self, changing: asyncio.Future[list[BaseException | None]]) -> None:
        try:
            _check(await changing)
            await asyncio.sleep(0)
            self._run()
        except Exception as error:
            self._settle(error)
            raise

    def _settle(self, error: Exception | None = None) -> None:
        self._task = None
        settling, self._settling = self._settling, []
        for future in settling:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


def _retrieve(changing: asyncio.Future[list[BaseException | None]]) -> None:
    """Read the exception of a future, so that asyncio does not log that nobody did."""
    if not changing.cancelled():
        changing.exception()


def _check(results: Iterable[BaseException | None]) -> None:
    """Log the errors of failed disks, and raise any other exception."""
    for result in results:
        if isinstance(result, KafkaError):
            # A failed disk takes its own partitions offline; the other partitions must not be held up.
            _LOG.error("partition not changed", error=str(result))
        elif result is not None:
            raise result
