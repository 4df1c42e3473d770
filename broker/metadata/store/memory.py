"""The metadata store in memory, for tests and simulations, with leases that expire on the loop's clock.

`clock` is that of the brokers: the deadlines of sessions are on its boot time. In a simulation both are virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from odradek.broker.clock import Clock, SystemClock
from odradek.broker.metadata.store.embedded import EmbeddedSession, EmbeddedStore
from odradek.broker.metadata.store.store import KV, Op, StoreFailedError


class InMemoryStore(EmbeddedStore):
    """A store that several brokers of one process may share. It persists nothing. `sessions` has all it ever opened."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self.clock = clock or SystemClock()
        self.sessions: list[InMemorySession] = []

    @property
    def revision(self) -> int:
        return self._revision

    def commit_now(self, *then: Op) -> None:
        """Apply `then` as one transaction in this turn of the event loop, so that no watch sees it before."""
        self._apply(self._plan(then))

    def restore(self, kvs: Iterable[KV], revision: int) -> None:
        """Replace contents and revision as the restoration of a backup does. No watch sees a change."""
        self._kvs = {kv.key: kv for kv in kvs}
        self._keys = sorted(self._kvs)
        self._revision = revision

    async def session(self, ttl: float) -> InMemorySession:
        self.sessions.append(InMemorySession(self, *self._new_lease(), ttl))
        return self.sessions[-1]


class InMemorySession(EmbeddedSession):
    """A session that ends when it is revoked, or `ttl` seconds after `abandon`, which simulates the owner's death."""

    def __init__(self, store: InMemoryStore, lease: int, lost: asyncio.Event, ttl: float) -> None:
        super().__init__(store, lease, lost)
        self._ttl = ttl
        self._clock = store.clock
        self._abandoned_at: float | None = None
        self._ending: asyncio.Task[None] | None = None

    def deadline(self) -> float:
        heard_at = self._clock.boot_time() if self._abandoned_at is None else self._abandoned_at
        return heard_at + self._ttl

    def abandon(self) -> None:
        """Stop renewing the lease."""
        self._abandoned_at = self._clock.boot_time()
        asyncio.get_running_loop().call_later(self._ttl, self._expire)

    def _expire(self) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        try:
            await self.revoke()
        except StoreFailedError:
            self.lost.set()
