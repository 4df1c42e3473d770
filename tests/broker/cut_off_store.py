"""A broker's way to a metadata store that others share, which a test can cut off."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, Batch, Cmp, Op, Session, TxnResult, Watch


class CutOffStore:
    """While it is cut off nothing arrives and nothing is answered, and the deadlines of sessions have passed.

    The store itself ends no session: as in an outage of etcd, in which nobody is elected.
    """

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store
        self.max_operations = store.max_operations
        self._connected = asyncio.Event()
        self._connected.set()

    def cut(self) -> None:
        self._connected.clear()

    def heal(self) -> None:
        self._connected.set()

    @property
    def is_cut(self) -> bool:
        return not self._connected.is_set()

    async def wait(self) -> None:
        await self._connected.wait()

    async def check(self, prefix: bytes) -> None:
        await self.wait()
        await self._store.check(prefix)

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        await self.wait()
        return await self._store.range(prefix)

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        await self.wait()
        return await self._store.txn(when, then)

    def watch(self, prefix: bytes, after: int) -> Watch:
        return _Watch(self, self._store.watch(prefix, after))

    async def session(self, ttl: float) -> Session:
        await self.wait()
        return _Session(self, await self._store.session(ttl))

    async def revoke(self, lease: int) -> None:
        await self.wait()
        await self._store.revoke(lease)

    async def close(self) -> None:
        """Do nothing: the store is closed by its owner."""


class _Watch:
    def __init__(self, access: CutOffStore, watch: Watch) -> None:
        self._access = access
        self._watch = watch

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        batch = await self._watch.__anext__()
        await self._access.wait()
        return batch

    def request_progress(self, revision: int) -> None:
        self._watch.request_progress(revision)

    def close(self) -> None:
        self._watch.close()


class _Session:
    def __init__(self, access: CutOffStore, session: Session) -> None:
        self._access = access
        self._session = session
        self.lease = session.lease
        self.lost = session.lost

    def deadline(self) -> float:
        return -math.inf if self._access.is_cut else self._session.deadline()

    async def revoke(self) -> None:
        await self._access.wait()
        await self._session.revoke()
