"""A session: a lease of etcd that is kept alive.

```
t_send ─────► etcd renews the lease ─────► answer with TTL                    etcd deletes the keys
  │                  │                                                               │
  └───────────── TTL − margin ──────────────► deadline                               │
                     └──────────────────── TTL, then up to 0.5 s ───────────────────►┘
```

etcd's clock for the lease starts after `t_send`, so that the owner stops relying on its keys before any other broker
can see them vanish; the margin allows for clocks of different speed. The deadline is on a clock that does not stop
while the machine sleeps.

Only an answer of etcd ends the session: after an outage of etcd the lease may still exist.
"""

from __future__ import annotations

import asyncio

from odradek.broker.clock import Clock
from odradek.broker.metadata.store.etcd.client import PAUSE, Client
from odradek.broker.metadata.store.etcd.errors import NoAnswerError, NotServedError
from odradek.broker.metadata.store.etcd.messages import (
    LEASE_GRANT,
    LEASE_KEEP_ALIVE,
    LEASE_REVOKE,
    Lease,
    lease_grant_request,
    lease_request,
    lease_response,
)
from odradek.broker.metadata.store.store import (
    LeaseLostError,
    StoreError,
    StoreFailedError,
    StoreUnreachableError,
)
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_KEEP_ALIVES_PER_TTL = 5
_MARGIN_OF_TTL = 0.1
_LEAST_MARGIN = 0.2


class EtcdSession:
    """Opened with `open`. `close` ends the keep-alives only; `revoke` ends the lease."""

    @classmethod
    async def open(cls, client: Client, clock: Clock, ttl: float) -> EtcdSession:
        """Ask for a lease of `ttl` seconds, rounded down; etcd grants no less than its election time-out allows.

        A grant whose answer is lost leaves a lease without keys, which expires.
        """
        sent = clock.boot_time()
        granted = lease_response(await client.read(LEASE_GRANT, lease_grant_request(max(1, int(ttl)))))
        return cls(client, clock, granted, sent)

    def __init__(self, client: Client, clock: Clock, granted: Lease, sent: float) -> None:
        self.lease = granted.id
        self.ttl = granted.ttl
        self.lost = asyncio.Event()
        self._client = client
        self._clock = clock
        self._deadline = _deadline(sent, granted.ttl)
        self._keeping_alive = asyncio.get_running_loop().create_task(self._keep_alive(sent), name="etcd session")

    def deadline(self) -> float:
        return self._deadline

    async def revoke(self) -> None:
        if not self.lost.is_set():
            await revoke(self._client, self.lease)
            self.ended()
        await self.close()

    def ended(self) -> None:
        """Note that the lease is over."""
        self.lost.set()
        self._keeping_alive.cancel()

    async def close(self) -> None:
        self._keeping_alive.cancel()
        await asyncio.gather(self._keeping_alive, return_exceptions=True)

    async def _keep_alive(self, sent: float) -> None:
        interval = renewal_interval(self._client.options.heartbeat, self.ttl)
        while True:
            await asyncio.sleep(sent + interval - self._clock.boot_time())
            try:
                endpoint = await self._client.connected()
                sent = self._clock.boot_time()
                # A call with one message and one answer is a legal use of the stream that LeaseKeepAlive is.
                response = await self._client.call(endpoint, LEASE_KEEP_ALIVE, lease_request(self.lease))
            except StoreFailedError:
                return  # closed
            except (NoAnswerError, NotServedError, StoreUnreachableError) as error:
                _LOG.debug("etcd session not renewed", lease=self.lease, error=str(error))
                self._client.options.counts.renewals_failed += 1
                sent = self._clock.boot_time() - interval + PAUSE
            except StoreError as error:
                _LOG.warning("etcd session not renewed", lease=self.lease, error=str(error))
                self._client.options.counts.renewals_failed += 1
                sent = self._clock.boot_time()
            else:
                self._renewed(sent, lease_response(response))

    def _renewed(self, sent: float, lease: Lease) -> None:
        if lease.ttl > 0:
            self._deadline = max(self._deadline, _deadline(sent, lease.ttl))
            return
        _LOG.warning("etcd session lost", lease=self.lease)
        self._client.options.counts.sessions_lost += 1
        self.ended()


async def revoke(client: Client, lease: int) -> None:
    """End a lease of any owner. Does nothing if it has ended. Raises `StoreError`."""
    try:
        await client.read(LEASE_REVOKE, lease_request(lease))
    except LeaseLostError:
        pass


def renewal_interval(heartbeat: float, ttl: int) -> float:
    """Return the seconds between two renewals: the broker's heartbeat, or a fifth of the lease if that is less."""
    return min(heartbeat, ttl / _KEEP_ALIVES_PER_TTL)


def _deadline(sent: float, ttl: int) -> float:
    return sent + ttl - max(_MARGIN_OF_TTL * ttl, _LEAST_MARGIN)
