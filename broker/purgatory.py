"""The purgatory: requests that wait for an event on a key, or for a timeout.

```
park(operation, keys, timeout) ─► watched under every key ─┬─ touch(key) ─► on the next turn, is_ready ─► answer()
                                                           ├─ timeout, release ─────► answer(), with the current state
                                                           └─ future cancelled ─────► discarded
```

The users agree on the keys; here a key is a `Partition`. `touch` costs one dictionary look-up if nothing waits, so that
every append may call it. `is_ready` is called on the next turn of the event loop, once for each touched key, and then
the operation is answered: several appends of one turn wake a parked fetch together, and the append's own answer is
sent first.

This module does not depend on requests: an operation decides when it is ready and builds the answer. A connection parks
at most one operation, which limits their number. Kafka's `DelayedOperationPurgatory` is the model; the heap of the
clock's timers replaces its timing wheel.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from odradek.broker.waiting import Timer, Timers

T = TypeVar("T")


class DelayedOperation(ABC, Generic[T]):
    """One parked request. Once parked it belongs to the purgatory, which calls `answer` at most once."""

    @abstractmethod
    def is_ready(self, key: Hashable) -> bool:
        """Return whether the operation can be answered after events on `key`. It is cheap, as each turn may call it."""

    @abstractmethod
    def answer(self) -> T:
        """Return the answer for the current state: the operation is ready, has timed out, or the broker stops."""


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
        self.timer: Timer | None = None


class Purgatory(Generic[T]):
    """The waiting operations of one kind, `watched` by key. `name` is the label of its metric.

    `timers` are those of the timeouts, which clients choose: `waiting.client_timers`.
    """

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, timers: Timers) -> None:
        self.name = name
        self._loop = loop
        self._timers = timers
        self.watched: dict[Hashable, dict[_Parked[T], None]] = {}
        self._parked: dict[_Parked[T], None] = {}
        self._touched: dict[Hashable, None] = {}
        self._ready: list[_Parked[T]] = []
        self._is_scheduled = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, operation: DelayedOperation[T], keys: Iterable[Hashable], timeout_ms: int) -> asyncio.Future[T]:
        """Watch `keys` for the operation, and return the future of its answer, which comes within `timeout_ms`.

        The caller has checked that the operation is not ready yet. Cancelling the future discards the operation.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        parked = _Parked(operation, tuple(dict.fromkeys(keys)), future)
        for key in parked.keys:
            self.watched.setdefault(key, {})[parked] = None
        self._parked[parked] = None
        parked.timer = self._timers.call_later(max(0, timeout_ms) / 1000, self._take, parked)
        future.add_done_callback(lambda _: self._forget(parked))
        if self._is_closed:
            self._take(parked)
        return future

    def touch(self, key: Hashable) -> None:
        """Handle an event on `key`: answer the operations that it makes ready, on the next turn of the event loop."""
        if key in self.watched:
            self._touched[key] = None
            self._schedule()

    def release(self, key: Hashable) -> None:
        """Answer all operations that watch `key`, ready or not: there will be no more events on it."""
        for parked in tuple(self.watched.get(key, ())):
            self._take(parked)

    def close(self) -> None:
        """Answer all operations, ready or not, and later ones as soon as they are parked: the broker stops."""
        self._is_closed = True
        for parked in tuple(self._parked):
            self._take(parked)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run)

    def _take(self, parked: _Parked[T]) -> None:
        if self._forget(parked):
            self._ready.append(parked)
            self._schedule()

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

    def _run(self) -> None:
        """Answer what is ready. An error of an operation becomes its answer, and touches no other."""
        self._is_scheduled = False
        touched, self._touched = self._touched, {}
        ready, self._ready = self._ready, []
        for key in touched:
            for parked in tuple(self.watched.get(key, ())):
                try:
                    if not parked.operation.is_ready(key):
                        continue
                except Exception as error:  # noqa: BLE001 - the future passes it on
                    parked.future.set_exception(error)
                if self._forget(parked):
                    ready.append(parked)
        for parked in ready:
            if parked.future.done():
                continue
            try:
                answer: Any = parked.operation.answer()
            except Exception as error:  # noqa: BLE001 - as above
                parked.future.set_exception(error)
            else:
                parked.future.set_result(answer)
