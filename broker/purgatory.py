"""Requests that wait for something to happen to a key, or for their time to run out.

```
park(operation, keys, timeout) ─► watched under every key ─┬─ touch(key), is_ready ─► answer() on the next turn
                                                           ├─ time out, release ────► answer(), with what there is
                                                           └─ future cancelled ─────► dropped: nobody asks any more
```

A key is whatever its users agree on, here a `Partition`. `touch` costs one dictionary look-up when nobody waits, so
that an append may call it every time. An operation that has become ready is answered on the next turn of the loop,
once, however often it was touched in between: several appends of one turn wake a parked fetch together, and the
append's own answer goes out first.

Nothing here knows requests: an operation decides when it is ready and what the answer is. A connection parks one
operation at most, which bounds their number. Kafka's `DelayedOperationPurgatory` is the model; its timing wheel is the
event loop's timer heap here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class DelayedOperation(ABC, Generic[T]):
    """One parked request. Once parked it belongs to the purgatory, which calls `answer` at most once."""

    @abstractmethod
    def is_ready(self, key: Hashable) -> bool:
        """Say whether the answer can be given now that something happened to `key`; called on every touch, so cheap."""

    @abstractmethod
    def answer(self) -> T:
        """Return the answer as things stand: it is ready, its time is up, or the broker stops."""


class _Parked(Generic[T]):
    __slots__ = ("future", "keys", "operation", "timer")

    def __init__(
        self,
        operation: DelayedOperation[T],
        keys: tuple[Hashable, ...],
        future: asyncio.Future[T],
    ) -> None:
        self.operation = operation
        self.keys = keys
        self.future = future
        self.timer: asyncio.TimerHandle | None = None


class Purgatory(Generic[T]):
    """The operations of one kind that wait, `watched` by key; `name` is the value of its metric's label."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self._loop = loop
        self.watched: dict[Hashable, dict[_Parked[T], None]] = {}
        self._parked: dict[_Parked[T], None] = {}
        self._ready: list[_Parked[T]] = []
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, operation: DelayedOperation[T], keys: Iterable[Hashable], timeout_ms: int) -> asyncio.Future[T]:
        """Watch `keys` for the operation and return the future of its answer, given after `timeout_ms` at the latest.

        The caller has made sure that the operation is not ready yet. Cancelling the future drops the operation.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        parked = _Parked(operation, tuple(dict.fromkeys(keys)), future)
        for key in parked.keys:
            self.watched.setdefault(key, {})[parked] = None
        self._parked[parked] = None
        parked.timer = self._loop.call_later(max(0, timeout_ms) / 1000, self._take, parked)
        future.add_done_callback(lambda _: self._forget(parked))
        if self._is_closed:
            self._take(parked)
        return future

    def touch(self, key: Hashable) -> None:
        """Something happened to `key`: answer, on the next turn of the loop, the operations that this makes ready."""
        watchers = self.watched.get(key)
        if watchers is not None:
            for parked in tuple(watchers):
                if parked.operation.is_ready(key):
                    self._take(parked)

    def release(self, key: Hashable) -> None:
        """Answer everything that watches `key`, ready or not: nothing will happen to it here any more."""
        for parked in tuple(self.watched.get(key, ())):
            self._take(parked)

    def close(self) -> None:
        """Answer everything, ready or not, and from now on what is parked as well: the broker stops."""
        self._is_closed = True
        for parked in tuple(self._parked):
            self._take(parked)

    def _take(self, parked: _Parked[T]) -> None:
        if not self._forget(parked):
            return
        if not self._ready:
            self._loop.call_soon(self._answer_ready)
        self._ready.append(parked)

    def _forget(self, parked: _Parked[T]) -> bool:
        if parked not in self._parked:
            return False
        del self._parked[parked]
        if parked.timer is not None:
            parked.timer.cancel()
        for key in parked.keys:
            watchers = self.watched[key]
            del watchers[parked]
            if not watchers:
                del self.watched[key]
        return True

    def _answer_ready(self) -> None:
        ready, self._ready = self._ready, []
        for parked in ready:
            if parked.future.done():
                continue
            try:
                answer: Any = parked.operation.answer()
            except Exception as error:  # noqa: BLE001 - whoever awaits the future handles it
                parked.future.set_exception(error)
            else:
                parked.future.set_result(answer)
