"""Time slices: long requests executed a few milliseconds at a time, so that other requests run in between.

```
steps ─► the first slice, at once ─┬─ ended in it: answered without a task, as most are
 (a generator; each `yield` is a   └─ not ended: waits in a queue ─► one slice of one request per turn of the loop
  place where it may be paused)
```

A client thus waits for at most one slice of other clients' long requests, however long and however many they are. The
state of the broker may change between two slices: a handler must look up again what it needs after a pause. If the
client disconnects, its handler ends.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from odradek.broker.clock import Clock

S = TypeVar("S")
T = TypeVar("T")
L = TypeVar("L", bound="Sortable")
Steps = Generator[None, None, T]
"""Work that may be paused at each `yield`; the generator returns the result."""

SLICE_SECONDS: Final = 0.002
"""Long compared with a turn of the event loop, some 50 µs; short enough for the p99 of other clients."""
_SORTED_AT_ONCE: Final = 1000
"""Access rules, the slowest rows that are sorted: less than 2 ms."""


def is_steps(result: object) -> TypeGuard[Steps[Any]]:
    """Return whether a handler has returned steps. A coroutine compiled by mypyc has a generator's methods, too."""
    if isinstance(result, asyncio.Future):  # of a parked request; the abstract classes take 0.5 µs
        return False
    return isinstance(result, Generator) and not isinstance(result, Awaitable)


class ClientDisconnected(Exception):  # noqa: N818 - an event, not an error
    """Raised in long work when its client has closed the connection."""


class Sortable(Protocol):
    """A row that has an order."""

    def __lt__(self, other: Any, /) -> bool: ...


class Peer(Protocol):
    """The client that waits for the answer: its connection."""

    is_disconnected: bool


class TimeSlices:
    """Shares the event loop among the long requests of one broker."""

    def __init__(self, clock: Clock) -> None:
        self.monotonic = clock.monotonic
        self._waiting: deque[Callable[[], object]] = deque()

    def advance(self, steps: Steps[T]) -> tuple[T] | None:
        """Run steps until the slice is over. Returns their result, in a tuple, if they end before, else None."""
        monotonic = self.monotonic
        ends_at = monotonic() + SLICE_SECONDS
        try:
            next(steps)
            while monotonic() < ends_at:
                next(steps)
        except StopIteration as end:  # not passed on: a traceback through compiled code takes 2 µs
            return (end.value,)
        return None

    async def finish(self, steps: Steps[T], peer: Peer | None) -> T:
        """Run the rest of `steps`, one slice in each turn, and return their result.

        Raises ClientDisconnected if the peer has disconnected, and the exceptions of the steps. Without a peer the
        work is always finished.
        """
        try:
            while True:
                await self.turn(peer)
                ended = self.advance(steps)
                if ended is not None:
                    return ended[0]
        finally:
            steps.close()  # at the `yield` where they stopped, so that they release their resources

    def begin(self, peer: Peer) -> TimeSlice:
        """Start a slice, for a handler that is a coroutine."""
        return TimeSlice(self, peer)

    async def turn(self, peer: Peer | None) -> None:
        """Wait for the next turn of this caller. Raises ClientDisconnected."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self.call(partial(_wake, turn))
        await turn
        if peer is not None and peer.is_disconnected:
            raise ClientDisconnected

    def call(self, callback: Callable[[], object]) -> None:
        """Call `callback`, which runs for one slice at most and raises nothing, in its turn."""
        self._waiting.append(callback)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Call the callback that has waited longest; the others follow in later turns of the event loop."""
        callback = self._waiting[0]
        try:
            callback()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._next)


class TimeSlice:
    """The slice of one request whose handler is a coroutine: it may be paused at each `await slice.step()`."""

    def __init__(self, slices: TimeSlices, peer: Peer) -> None:
        self._slices = slices
        self._peer = peer
        self._ends_at = slices.monotonic() + SLICE_SECONDS

    async def step(self) -> None:
        """Wait for the next slice if this one is over. Raises ClientDisconnected if the peer has disconnected."""
        if self._peer.is_disconnected:
            raise ClientDisconnected
        if self._slices.monotonic() >= self._ends_at:
            await self._slices.turn(self._peer)
            self._ends_at = self._slices.monotonic() + SLICE_SECONDS

    async def map(self, function: Callable[[S], T], rows: Iterable[S]) -> list[T]:
        """Return the function's result for each row. Raises its exceptions, and those of `step`."""
        results = []
        for row in rows:
            await self.step()
            results.append(function(row))
        return results

    async def sort(self, rows: Sequence[L]) -> list[L]:
        """Return the rows sorted. Raises the exceptions of comparing them, and those of `step`."""
        parts = []
        for start in range(0, len(rows), _SORTED_AT_ONCE):
            await self.step()
            parts.append(sorted(rows[start : start + _SORTED_AT_ONCE]))
        return await self.map(_same, heapq.merge(*parts)) if len(parts) > 1 else parts[0] if parts else []


def _same(row: S) -> S:
    return row


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
