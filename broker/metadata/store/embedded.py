"""The common part of the embedded stores: the current keys in memory, transactions one at a time, history, sessions.

```
txn ─► wait for its turn ─► compare ─► plan a Batch ─► persist (subclass) ─► apply ─► history ─► watches
                               └ not equal: (False, revision)   └ error: the store has failed permanently
```

Memory changes only after `persist` has returned, so that no reader sees what may be lost. A transaction runs in its own
task: cancelling the caller does not interrupt it.
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from odradek.broker.metadata.store.history import History, HistoryWatch
from odradek.broker.metadata.store.store import (
    KV,
    MAX_OPERATIONS,
    Batch,
    Change,
    Cmp,
    Delete,
    LeaseLostError,
    Op,
    Put,
    StoreFailedError,
    TxnResult,
    Watch,
    check_operations,
    prefix_end,
)
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import outcome_of

_LOG = StructuredLogger(__name__)


class _Lease(NamedTuple):
    keys: set[bytes]
    lost: asyncio.Event


class EmbeddedStore:
    """Base of `InMemoryStore` and `SqliteStore`. Belongs to one event loop."""

    max_operations = MAX_OPERATIONS

    def __init__(self, kvs: Iterable[KV] = (), revision: int = 0) -> None:
        self._kvs = {kv.key: kv for kv in kvs}
        self._keys = sorted(self._kvs)
        self._revision = revision
        self._history = History(revision)
        self._leases: dict[int, _Lease] = {}
        self._last_lease = revision
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[TxnResult]] = set()
        self._failure: StoreFailedError | None = None

    async def check(self, prefix: bytes) -> None:  # noqa: ARG002 - it is this process's own
        self._check_usable()

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        self._check_usable()
        return [self._kvs[key] for key in self._under(prefix)], self._revision

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        check_operations(when, then, self.max_operations)
        self._check_usable()
        return await self._uninterrupted(when, then)

    async def rewrite(self, plan: Callable[[Sequence[KV]], Sequence[Op]]) -> TxnResult:
        """Apply, at one revision, any number of operations, which `plan` returns for all keys at that moment."""
        self._check_usable()
        return await self._uninterrupted((), (), plan=plan)

    def watch(self, prefix: bytes, after: int) -> Watch:
        return HistoryWatch(self._history, prefix, after)

    def refuse_all(self) -> None:
        """Refuse the transactions that wait, and later ones. The one that is being written ends, done or not at all."""
        self._fail(StoreFailedError("the broker was killed"))

    async def close(self) -> None:
        while self._tasks:
            # Not `gather`: from Python 3.12 on it returns at once if all have finished, before `_ended` removes them.
            await asyncio.wait(tuple(self._tasks))
        self._fail(StoreFailedError("the metadata store is closed"))
        self._history.close()

    async def _persist(self, batch: Batch) -> None:
        """Make `batch` durable. An exception means that the store has failed."""

    def _new_lease(self) -> tuple[int, asyncio.Event]:
        """Return a new lease, and the event that is set when it ends."""
        self._check_usable()
        self._last_lease += 1
        lease = self._leases[self._last_lease] = _Lease(set(), asyncio.Event())
        return self._last_lease, lease.lost

    async def revoke(self, lease: int) -> None:
        if lease in self._leases:
            await self._uninterrupted((), (), ending=lease)

    async def _uninterrupted(
        self,
        when: Sequence[Cmp],
        then: Sequence[Op],
        ending: int = 0,
        plan: Callable[[Sequence[KV]], Sequence[Op]] | None = None,
    ) -> TxnResult:
        task = asyncio.get_running_loop().create_task(self._in_turn(when, then, ending, plan))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await outcome_of(task)

    def _ended(self, task: asyncio.Task[TxnResult]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # If the caller was cancelled, this is the only trace of the error.
            _LOG.debug("metadata transaction failed", error=str(error))

    async def _in_turn(
        self,
        when: Sequence[Cmp],
        then: Sequence[Op],
        ending: int,
        plan: Callable[[Sequence[KV]], Sequence[Op]] | None,
    ) -> TxnResult:
        async with self._turn:
            self._check_usable()
            if not all(self._holds(comparison) for comparison in when):
                return TxnResult(False, self._revision)
            if ending in self._leases:
                then = [Delete(key) for key in self._leases[ending].keys]
            if plan is not None:
                then = plan([self._kvs[key] for key in self._keys])
            batch = self._plan(then)
            if batch.changes:
                await self._persist_or_fail(batch)
                self._apply(batch)
            if ending in self._leases:
                self._leases.pop(ending).lost.set()
            return TxnResult(True, self._revision)

    async def _persist_or_fail(self, batch: Batch) -> None:
        try:
            await self._persist(batch)
        except asyncio.CancelledError:
            self._fail(StoreFailedError("a metadata write was interrupted"))
            raise
        except Exception as error:
            # After a failed write the content of the disk is unknown, and a second attempt would not show it.
            failure = StoreFailedError(f"the metadata store cannot write: {error}")
            self._fail(failure)
            raise failure from error

    def _holds(self, comparison: Cmp) -> bool:
        kv = self._kvs.get(comparison.key)
        created, modified = (kv.create_revision, kv.mod_revision) if kv is not None else (0, 0)
        return comparison.create_revision in (None, created) and comparison.mod_revision in (None, modified)

    def _plan(self, then: Sequence[Op]) -> Batch:
        revision = self._revision + 1
        changes: dict[bytes, KV | None] = {}
        for op in then:
            if isinstance(op, Put):
                if op.lease and op.lease not in self._leases:
                    raise LeaseLostError(f"lease {op.lease} has ended")
                old = self._kvs.get(op.key)
                changes[op.key] = KV(op.key, op.value, old.create_revision if old else revision, revision, op.lease)
            elif isinstance(op, Delete):
                if op.key in self._kvs:
                    changes[op.key] = None
            else:
                changes |= dict.fromkeys(self._under(op.prefix))
        return Batch(revision, tuple(Change(key, changes[key]) for key in sorted(changes)))

    def _apply(self, batch: Batch) -> None:
        for key, kv in batch.changes:
            old = self._kvs.get(key)
            if old is not None and old.lease in self._leases:
                self._leases[old.lease].keys.discard(key)
            if kv is None:
                del self._kvs[key]
                del self._keys[bisect_left(self._keys, key)]
                continue
            if old is None:
                insort(self._keys, key)
            self._kvs[key] = kv
            if kv.lease:
                self._leases[kv.lease].keys.add(key)
        self._revision = batch.revision
        self._history.append(batch)

    def _under(self, prefix: bytes) -> list[bytes]:
        end = prefix_end(prefix)
        stop = len(self._keys) if end is None else bisect_left(self._keys, end)
        return self._keys[bisect_left(self._keys, prefix) : stop]

    def _fail(self, error: StoreFailedError) -> None:
        if self._failure is None:
            self._failure = error
            self._history.fail(error)

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure


class EmbeddedSession:
    """A `Session` that only ends when it is revoked."""

    def __init__(self, store: EmbeddedStore, lease: int, lost: asyncio.Event) -> None:
        self.lease = lease
        self.lost = lost
        self._store = store

    def deadline(self) -> float:
        return math.inf

    async def revoke(self) -> None:
        await self._store.revoke(self.lease)
