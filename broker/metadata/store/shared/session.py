"""A worker's session: it ends with the connection, or when pings are not answered in time.

```
t_send ──► the server hears the worker ──► answer
  └──────────── TTL − a tenth ────────► deadline
                └───────── TTL, and up to a fifth ──► the server revokes the session
```
"""

from __future__ import annotations

import asyncio
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.metadata.store.shared.connection import Connection, ConnectionLostError
from odradek.broker.metadata.store.shared.messages import Ping, Revoke
from odradek.broker.metadata.store.store import StoreError

_PINGS_PER_TTL: Final = 5
_OF_TTL: Final = 0.9


class SharedSession:
    """A `Session` that was opened at `sent`, on the clock's boot time, over `connection`."""

    def __init__(self, connection: Connection, clock: Clock, lease: int, ttl: float, sent: float) -> None:
        self.lease = lease
        self.lost = asyncio.Event()
        self._connection = connection
        self._clock = clock
        self._ttl = ttl
        self._deadline = sent + ttl * _OF_TTL
        self._pinging = asyncio.get_running_loop().create_task(self._ping(), name="session of the shared store")

    def deadline(self) -> float:
        return self._deadline

    async def revoke(self) -> None:
        if not self.lost.is_set():
            try:
                await self._connection.call(Revoke(self._connection.next_id(), self.lease))
            except ConnectionLostError:
                pass  # which has ended the session
            self.end()

    def end(self) -> None:
        """Note that the session has ended."""
        if not self.lost.is_set():
            self._deadline = min(self._deadline, self._clock.boot_time())
            self.lost.set()
            self._pinging.cancel()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ttl / _PINGS_PER_TTL)
            sent = self._clock.boot_time()
            try:
                await self._connection.call(Ping(self._connection.next_id()))
            except StoreError:
                return  # with the connection, which ends the session
            self._deadline = sent + self._ttl * _OF_TTL
