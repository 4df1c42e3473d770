"""The timers of a `MovableClock` on one event loop: a heap of deadlines, and one timer of the loop for the first.

```
call_at ─► heap ─┬─ the loop's timer: real time has reached the first ─► fire what is due, arm again
                 └─ `hold`: the clock moves ─► fire(when), step by step ─► `release`
```

A cancelled timer stays in the heap until its deadline, or until more than half of the heap is cancelled, as in asyncio:
most delayed requests are answered before their time-out, and cancelling must be cheap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

_FEW_CANCELLED: Final = 100


class Deadline:
    """One call that is due at `when`; the first of several for the same time is the one that was set first."""

    __slots__ = ("_arguments", "_callback", "_context", "_deadlines", "number", "when")

    def __init__(
        self,
        deadlines: Deadlines,
        when: float,
        number: int,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: Context,
    ) -> None:
        self.when = when
        self._deadlines = deadlines
        self.number = number
        self._callback: Callable[..., object] | None = callback
        self._arguments = arguments
        self._context = context

    def __lt__(self, other: Deadline) -> bool:
        return (self.when, self.number) < (other.when, other.number)

    @property
    def is_cancelled(self) -> bool:
        """Whether the call will not be made, or has been made."""
        return self._callback is None

    def cancel(self) -> None:
        if self._callback is not None:
            self._callback = None
            self._arguments = ()
            self._deadlines.one_cancelled()

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make the call, once; an error goes to the loop's exception handler, as that of the loop's own timers."""
        callback, arguments = self._callback, self._arguments
        self._callback, self._arguments = None, ()
        if callback is None:
            return
        try:
            self._context.run(callback, *arguments)
        except Exception as error:  # noqa: BLE001 - as asyncio: one callback must not keep the others from running
            loop.call_exception_handler({"message": f"error in {callback}", "exception": error})


class Deadlines:
    """The deadlines on one event loop; `now` returns the clock's time. Used on that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> None:
        self.loop = loop
        self._now = now
        self._heap: list[Deadline] = []
        self._numbers = count()
        self._cancelled = 0
        self._is_held = False
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for = 0.0

    def add(self, when: float, callback: Callable[..., object], arguments: tuple[Any, ...]) -> Deadline:
        """Call `callback(*arguments)` when it is `when`."""
        deadline = Deadline(self, when, next(self._numbers), callback, arguments, copy_context())
        heappush(self._heap, deadline)
        if not self._is_held and (self._armed is None or when < self._armed_for):
            self._arm()
        return deadline

    def hold(self) -> None:
        """Fire nothing by real time until `release`."""
        self._is_held = True
        self._disarm()

    def release(self) -> None:
        """Fire by real time again."""
        self._is_held = False
        self._arm()

    def first(self) -> float | None:
        """Return the time of the first deadline, None if there is none."""
        heap = self._heap
        while heap and heap[0].is_cancelled:
            heappop(heap)
            self._cancelled -= 1
        return heap[0].when if heap else None

    def fire(self, now: float) -> None:
        """Make the calls that are due at `now`, in order. Those that they set for `now` are left for the next time."""
        first_new = next(self._numbers)
        while (when := self.first()) is not None and when <= now and self._heap[0].number < first_new:
            heappop(self._heap).run(self.loop)

    def one_cancelled(self) -> None:
        """Count a cancelled deadline, and remove all of them if they are many."""
        self._cancelled += 1
        if self._cancelled > _FEW_CANCELLED and self._cancelled * 2 > len(self._heap):
            self._heap = [deadline for deadline in self._heap if not deadline.is_cancelled]
            heapify(self._heap)
            self._cancelled = 0

    def _arm(self) -> None:
        self._disarm()
        when = self.first()
        if when is not None:
            self._armed_for = when
            self._armed = self.loop.call_later(max(0.0, when - self._now()), self._real_time_passed)

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _real_time_passed(self) -> None:
        self._armed = None
        self.fire(self._now())
        self._arm()
