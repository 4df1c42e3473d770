"""What is done to partitions when the metadata image changes: in order, and without holding the event loop for long.

```
run ─► [step, step, …] [step, …]     groups, each begun when the one before it has ended
          │
          ├─ needs no disk: done when it is called
          └─ returns a coroutine: waited for, with up to 31 others of its group
```

The steps of one group concern different partitions, so those that need the disk use it on threads, side by side. Steps
that need no disk, as at the start of a broker that has its logs already, are done before `run` returns; or, if there
are many, in slices between which other work of the loop gets its turn. Used on the event loop only, by `partitions`.
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

_SLICE = 0.01
"""Seconds that steps may hold the loop at a time."""
_CONCURRENT = 32
"""Steps that may wait for the disk at a time."""

Step = Callable[[], Coroutine[Any, Any, None] | None]


class PartitionSteps:
    """The steps that are to be done yet. What a step raises, other than a disk's failure, ends the broker."""

    def __init__(self, tasks: BackgroundTasks, clock: Clock) -> None:
        self._tasks = tasks
        self._clock = clock
        self._steps: deque[tuple[int, Step]] = deque()  # each with the number of its group
        self._groups = 0
        self._task: asyncio.Task[None] | None = None
        self._settling: list[asyncio.Future[None]] = []

    def run(self, *groups: Iterable[Step]) -> None:
        """Do the steps of these groups after all that were given before: now, or as soon as may be."""
        for group in groups:
            self._groups += 1
            self._steps.extend([(self._groups, step) for step in group])
        if self._task is None:
            self._run()

    async def settled(self) -> None:
        """Wait until all steps so far are done. Raises what keeps one of them from it."""
        if self._task is not None:
            settling: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settling.append(settling)
            await settling

    def _run(self) -> None:
        """Run steps until they are done, take too long, or must be waited for; then go on later."""
        stop_at = self._clock.monotonic() + _SLICE
        waiting: list[Coroutine[Any, Any, None]] = []
        group = self._steps[0][0] if self._steps else 0
        while self._steps and len(waiting) < _CONCURRENT and self._clock.monotonic() < stop_at:
            if waiting and self._steps[0][0] != group:
                break
            group, step = self._steps.popleft()
            must_wait = step()
            if must_wait is not None:
                waiting.append(must_wait)
        if waiting or self._steps:
            self._task = self._tasks.start("partition changes", self._run_later(waiting))
            return
        self._settle()

    async def _run_later(self, waiting: list[Coroutine[Any, Any, None]]) -> None:
        try:
            _check(await asyncio.gather(*waiting, return_exceptions=True))
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


def _check(results: Iterable[BaseException | None]) -> None:
    """Log what the disk refused, and raise anything else."""
    for result in results:
        if isinstance(result, KafkaError):
            # The disk failed under it, which takes its partitions offline; the others must not be held up.
            _LOG.error("partition not changed", error=str(result))
        elif result is not None:
            raise result
