"""Rows of many callers, sent to one broker in few requests, of which one is in flight at a time.

```
submit(row) ─► waiting rows ─► request: rows with different keys, up to a size ─► send ─► result of each row
                    ▲                                                                │
                    └── rows that arrive meanwhile, and second rows of a key ◄───────┘ the next request
```

If no answer arrives, all rows of the request fail with NETWORK_EXCEPTION: the broker may have handled them or not. The
queue repeats nothing; a caller does, if it has to.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError

Row = TypeVar("Row")
Result = TypeVar("Result")

LARGEST_REQUEST = 256 * 1024
"""The estimated size of a request in bytes. Brokers refuse requests without records that have more than 1 MiB, or
100,000 elements in all their lists; an element here has at least 4 bytes."""


class _Waiting(NamedTuple, Generic[Row, Result]):
    key: Hashable
    size: int
    row: Row
    result: asyncio.Future[Result]


class RowBatches(Generic[Row, Result]):
    """The rows for one broker and API. `send` returns the results by key, and raises only `KafkaError`."""

    def __init__(
        self, name: str, send: Callable[[Sequence[Row]], Awaitable[Mapping[Any, Result]]], tasks: BackgroundTasks
    ) -> None:
        self._name = name
        self._send = send
        self._tasks = tasks
        self._waiting: deque[_Waiting[Row, Result]] = deque()
        self._in_flight: list[_Waiting[Row, Result]] = []
        self._is_running = False

    def submit(self, key: Hashable, size: int, row: Row) -> asyncio.Future[Result]:
        """Send a row with the next request; return the future of its result, which fails with `KafkaError`."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(key, size, row, result))
        if not self._is_running:
            self._is_running = True
            self._tasks.start(self._name, self._run()).add_done_callback(self._ended)
        return result

    async def _run(self) -> None:
        while batch := self._take():
            self._in_flight = batch
            try:
                results = await self._send([waiting.row for waiting in batch])
            except KafkaError as error:
                _fail(batch, error)
            else:
                _finish(batch, results)

    def _ended(self, _task: asyncio.Task[None]) -> None:
        """Fail the rows that are left: the task was cancelled, even before its first step."""
        self._is_running = False
        _fail((*self._in_flight, *self._waiting), KafkaError(ErrorCode.NETWORK_EXCEPTION, "this broker is stopping"))
        self._in_flight = []
        self._waiting.clear()

    def _take(self) -> list[_Waiting[Row, Result]]:
        """Remove and return the rows of the next request: the oldest ones, none twice for a key."""
        batch: dict[Hashable, _Waiting[Row, Result]] = {}
        later: list[_Waiting[Row, Result]] = []
        size = 0
        while self._waiting:
            waiting = self._waiting.popleft()
            if waiting.result.done():  # its caller was cancelled
                continue
            if waiting.key in batch:
                later.append(waiting)
                continue
            if batch and size + waiting.size > LARGEST_REQUEST:
                later.append(waiting)
                break
            batch[waiting.key] = waiting
            size += waiting.size
        self._waiting.extendleft(reversed(later))
        return list(batch.values())


def _finish(batch: Sequence[_Waiting[Row, Result]], results: Mapping[Any, Result]) -> None:
    for waiting in batch:
        if waiting.key not in results:
            _fail((waiting,), KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the answer has no row for {waiting.key}"))
        elif not waiting.result.done():
            waiting.result.set_result(results[waiting.key])


def _fail(batch: Sequence[_Waiting[Row, Result]], error: KafkaError) -> None:
    for waiting in batch:
        if not waiting.result.done():
            waiting.result.set_exception(error)
