"""A worker's watch: a bounded queue of batches, filled by the connection of the moment.

```
             ┌─ connection ─► Watch(prefix, reached) ─► queued ─┐  full: EndWatch
detached ────┤                                                  ├─► parked ──► the owner has read it all: as before
             └◄──────────────── connection lost ────────────────┘
```

Each attempt has an id of its own, so that late changes of an earlier one are not taken for its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from odradek.broker.metadata.store.shared.connection import Connection
from odradek.broker.metadata.store.shared.messages import Changes, EndWatch, Failed, RequestProgress, Watch, encode
from odradek.broker.metadata.store.store import Batch, Change

QUEUED: Final = 256
"""The most batches that wait for the owner; later ones stay in the server's history."""


class SharedWatch:
    """A `Watch`. `attempts` has the watches that wait for changes, by the id of the attempt."""

    def __init__(
        self,
        attempts: dict[int, SharedWatch],
        prefix: bytes,
        after: int,
        on_end: Callable[[SharedWatch], None],
    ) -> None:
        self._attempts = attempts
        self._prefix = prefix
        self._reached = after
        self._on_end = on_end
        self._connection: Connection | None = None
        self._id = -1
        self._part: list[Change] = []
        self._batches: deque[Batch] = deque()
        self._arrived = asyncio.Event()
        self._awaited: int | None = None
        self._error: Exception | None = None
        self._closed = False

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        while not self._closed:
            if self._batches:
                batch = self._batches.popleft()
                if not self._batches and self._id not in self._attempts:
                    self._begin()
                return batch
            if self._error is not None:
                raise self._error
            self._arrived.clear()
            await self._arrived.wait()
        raise StopAsyncIteration

    def request_progress(self, revision: int) -> None:
        self._awaited = max(revision, self._awaited or 0)
        if self._id in self._attempts:
            self._send(RequestProgress(self._id, revision))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._leave()
            self._arrived.set()
            self._on_end(self)

    def attach(self, connection: Connection) -> None:
        """Go on over a new connection."""
        self._connection = connection
        if not self._batches:
            self._begin()

    def detach(self) -> None:
        """Note that the connection is lost."""
        self._attempts.pop(self._id, None)
        self._connection = None

    def received(self, message: Changes | Failed) -> None:
        """Queue what has arrived for the present attempt."""
        if isinstance(message, Failed):
            self._attempts.pop(self._id, None)
            self._error = message.error()
            self._arrived.set()
            self._on_end(self)
            return
        self._part += message.changes
        if not message.more:
            batch = Batch(message.revision, tuple(self._part))
            self._part = []
            self._queue(batch)

    def _queue(self, batch: Batch) -> None:
        """Queue a batch that is not known; one that only reports progress if it is new or awaited."""
        is_awaited = self._awaited is not None and batch.revision >= self._awaited
        if batch.revision < self._reached or (batch.revision == self._reached and (batch.changes or not is_awaited)):
            return
        if is_awaited:
            self._awaited = None
        self._reached = batch.revision
        self._batches.append(batch)
        self._arrived.set()
        if len(self._batches) >= QUEUED:
            self._leave()

    def _begin(self) -> None:
        """Start another attempt, at what has been queued, if there is a connection and the watch goes on."""
        if self._connection is None or self._closed or self._error is not None:
            return
        self._part = []
        self._id = self._connection.next_id()
        self._attempts[self._id] = self
        self._send(Watch(self._id, self._prefix, self._reached))
        if self._awaited is not None:
            self._send(RequestProgress(self._id, self._awaited))

    def _leave(self) -> None:
        if self._attempts.pop(self._id, None) is not None:
            self._send(EndWatch(self._id))

    def _send(self, request: Watch | RequestProgress | EndWatch) -> None:
        if self._connection is not None:
            self._connection.send(encode(request))
