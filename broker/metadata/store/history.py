"""The latest changes of an embedded store, and the watches over them.

```
  trimmed │ kept: at most 2 × KEPT batches │ next
          ^ _first                          ^ _first + len(_batches)      absolute positions
```

A watch is a position, not a queue: a slow one costs no memory. When the changes that it needs are trimmed, it raises
`CompactedError`. So memory is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from odradek.broker.metadata.store.store import Batch, CompactedError, StoreFailedError

KEPT = 4096
"""The least number of batches that are kept; a topic of 10,000 partitions makes 168."""


class History:
    """Batches in revision order. Belongs to one event loop."""

    def __init__(self, revision: int) -> None:
        self._batches: list[Batch] = []
        self._first = 0
        self._trimmed_revision = revision
        self._waiting: dict[asyncio.Future[None], None] = {}  # woken in the order in which they came
        self._ended: StoreFailedError | None = None
        self.closed = False

    def append(self, batch: Batch) -> None:
        self._batches.append(batch)
        if len(self._batches) >= 2 * KEPT:
            self._trimmed_revision = self._batches[KEPT - 1].revision
            del self._batches[:KEPT]
            self._first += KEPT
        self._wake()

    @property
    def revision(self) -> int:
        """The revision of the last change."""
        return self._batches[-1].revision if self._batches else self._trimmed_revision

    def position_after(self, revision: int) -> int:
        """Return the position of the first batch above `revision`. Raises `CompactedError`."""
        if revision < self._trimmed_revision:
            raise CompactedError(f"changes up to revision {self._trimmed_revision} are no longer kept")
        older = len(self._batches)
        while older and self._batches[older - 1].revision > revision:
            older -= 1
        return self._first + older

    def get(self, position: int) -> Batch | None:
        """Return the batch at `position`, or None if it does not exist yet. Raises `CompactedError`."""
        if position < self._first:
            raise CompactedError(f"changes up to revision {self._trimmed_revision} are no longer kept")
        index = position - self._first
        return self._batches[index] if index < len(self._batches) else None

    async def wait(self) -> None:
        """Return after the next `append`, `close` or `fail`. Raises `StoreFailedError` if the store has failed."""
        if self._ended is not None:
            raise self._ended
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    def close(self) -> None:
        """End all watches."""
        self.closed = True
        self._wake()

    def fail(self, error: StoreFailedError) -> None:
        """Make all watches, later ones too, raise `error` after the existing batches."""
        self._ended = error
        self._wake()

    def wake(self) -> None:
        self._wake()

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()


class HistoryWatch:
    """A `Watch` over a `History`."""

    def __init__(self, history: History, prefix: bytes, after: int) -> None:
        self._history = history
        self._prefix = prefix
        self._after = after
        self._position: int | None = None
        self._progress_requested = False
        self._closed = False

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        if self._position is None:
            self._position = self._history.position_after(self._after)
        while not (self._closed or self._history.closed):
            batch = self._history.get(self._position)
            if batch is not None:
                self._position += 1
                if visible := self._visible(batch):
                    return visible
            elif self._progress_requested:
                self._progress_requested = False
                return Batch(self._history.revision, ())
            else:
                await self._history.wait()
        raise StopAsyncIteration

    def request_progress(self, revision: int) -> None:  # noqa: ARG002 - an embedded store never lags behind
        self._progress_requested = True
        self._history.wake()

    def close(self) -> None:
        self._closed = True
        self._history.wake()

    def _visible(self, batch: Batch) -> Batch | None:
        """Return the part of `batch` under the prefix, or None if there is none, as etcd sends none then."""
        if all(change.key.startswith(self._prefix) for change in batch.changes):
            return batch
        changes = tuple(change for change in batch.changes if change.key.startswith(self._prefix))
        return Batch(batch.revision, changes) if changes else None
