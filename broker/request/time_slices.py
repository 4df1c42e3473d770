"""Time slices: the work of a long request done a few milliseconds at a time, so that others are served in between.

```
steps ─► the first slice, at once ─┬─ ended in it: answered without a task, as most are
 (a generator; each `yield` is a   └─ not ended: waits in a queue ─► one slice of one request per turn of the loop
  place where it may be left)
```

A client thus waits for one slice of others' long requests at most, however long they are and however many there are.
Between two slices anything may happen: a handler that goes on must not rely on what it looked up before, and one whose
client has gone ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Generator
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from odradek.broker.clock import Clock

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that may be left at each `yield`; it returns its result."""

SLICE_SECONDS: Final = 0.002
"""Long enough that a turn of the loop, some 50 µs, is little beside it; short enough for the p99 of everybody else."""


def is_steps(result: object) -> TypeGuard[Steps[Any]]:
    """Whether a handler has returned steps; what mypyc compiles of a coroutine has a generator's methods as well."""
    return isinstance(result, Generator) and not isinstance(result, Awaitable)


class ClientHasGone(Exception):  # noqa: N818 - it is what happened, and no error
    """Raised by work that takes long when its client has closed the connection: nobody waits for the answer."""


class Peer(Protocol):
    """The client that waits for the answer, as its connection knows it."""

    has_gone: bool


class TimeSlices:
    """Shares the event loop among the long requests of one broker."""

    def __init__(self, clock: Clock) -> None:
        self.monotonic = clock.monotonic
        self._waiting: deque[asyncio.Future[None]] = deque()

    def advance(self, steps: Steps[T]) -> None:
        """Do steps until the slice is over; ends with StopIteration, which has the result, if they end before."""
        monotonic = self.monotonic
        ends_at = monotonic() + SLICE_SECONDS
        next(steps)
        while monotonic() < ends_at:
            next(steps)

    async def finish(self, steps: Steps[T], peer: Peer | None) -> T:
        """Do what is left of `steps`, a slice in each of one's turns, and return their result.

        Raises ClientHasGone if nobody waits for it any more, and whatever the steps raise. Without a peer the work is
        done in any case.
        """
        try:
            while True:
                await self.turn(peer)
                self.advance(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()  # where they were left, so that they release what they hold

    def begin(self, peer: Peer) -> TimeSlice:
        """Begin a slice, for a handler that is a coroutine."""
        return TimeSlice(self, peer)

    async def turn(self, peer: Peer | None) -> None:
        """Wait for one's turn. Raises ClientHasGone."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._next)
        await turn
        if peer is not None and peer.has_gone:
            raise ClientHasGone

    def _next(self) -> None:
        """Give the one that has waited longest its turn, and the others theirs in later turns of the loop."""
        turn = self._waiting[0]
        if not turn.done():
            turn.set_result(None)
        self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)


class TimeSlice:
    """The slice of one request whose handler is a coroutine: `await slice.step()` is a place where it may be left."""

    def __init__(self, slices: TimeSlices, peer: Peer) -> None:
        self._slices = slices
        self._peer = peer
        self._ends_at = slices.monotonic() + SLICE_SECONDS

    async def step(self) -> None:
        """Wait for the next slice if this one is over. Raises ClientHasGone if nobody waits for the answer any more."""
        if self._peer.has_gone:
            raise ClientHasGone
        if self._slices.monotonic() >= self._ends_at:
            await self._slices.turn(self._peer)
            self._ends_at = self._slices.monotonic() + SLICE_SECONDS
