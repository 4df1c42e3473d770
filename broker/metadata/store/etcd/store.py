"""`EtcdStore`: a metadata store in etcd, which several brokers share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odradek.broker.clock import Clock
from odradek.broker.metadata.store.etcd.client import Client
from odradek.broker.metadata.store.etcd.messages import (
    RANGE,
    STATUS,
    TXN,
    Status,
    range_request,
    range_response,
    status_response,
    txn_request,
    txn_response,
)
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.etcd.session import EtcdSession, revoke
from odradek.broker.metadata.store.etcd.watch import EtcdWatch
from odradek.broker.metadata.store.store import (
    KV,
    MAX_OPERATIONS,
    Cmp,
    CompactedError,
    Op,
    StoreError,
    StoreFailedError,
    TxnResult,
    check_operations,
)
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

PAGE = 1000
"""The most keys that one answer has, so that it comes within the time limit of an attempt."""
_OLDEST, _RECOMMENDED = (3, 5), (3, 6)


class EtcdStore:
    """Belongs to one event loop. Nothing is sent before the first call."""

    max_operations = MAX_OPERATIONS

    def __init__(self, options: EtcdOptions, clock: Clock) -> None:
        self.client = Client(options)
        self._clock = clock
        self._watches: set[EtcdWatch] = set()
        self._sessions: dict[int, EtcdSession] = {}
        self._measuring: asyncio.Task[None] | None = None

    @property
    def counts(self) -> MetadataStoreCounts:
        return self.client.options.counts

    async def check_server(self, prefix: bytes) -> str:
        """Return the version of the server in use, which logs a warning below 3.6, after a read under `prefix`.

        Raises `StoreUnreachableError` (try again), `StoreAccessError` for a wrong user, password or certificate, and
        `StoreFailedError` below 3.5, whose leases and watches have errors that lose data.
        """
        version = (await self._read_status()).version
        release = _release(version)
        if release < _OLDEST:
            raise StoreFailedError(f"etcd has version {version}; version 3.6 or later is needed")
        if release < _RECOMMENDED:
            _LOG.warning("etcd is old: update it to version 3.6 or later", version=version)
        await self.client.read(RANGE, range_request(prefix, prefix, 1, 0))
        return version

    async def check(self, prefix: bytes) -> None:
        """As `check_server`."""
        await self.check_server(prefix)

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        while True:
            try:
                return await self._range(prefix)
            except CompactedError:
                continue  # between two pages; the newest revision always exists

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        check_operations(when, then)
        return txn_response(await self.client.write(TXN, txn_request(when, then)))

    def watch(self, prefix: bytes, after: int) -> EtcdWatch:
        watch = EtcdWatch(self.client, prefix, after)
        self._watches = {each for each in self._watches if not each.is_over} | {watch}
        return watch

    async def session(self, ttl: float) -> EtcdSession:
        session = await EtcdSession.open(self.client, self._clock, ttl)
        self._sessions = {lease: each for lease, each in self._sessions.items() if not each.lost.is_set()}
        self._sessions[session.lease] = session
        if self._measuring is None:
            self._measuring = asyncio.get_running_loop().create_task(self._measure(), name="etcd's size")
        return session

    async def revoke(self, lease: int) -> None:
        await revoke(self.client, lease)
        if lease in self._sessions:
            self._sessions.pop(lease).ended()

    async def close(self) -> None:
        """Stop watches and sessions. Leases that were not revoked expire. A transaction without an answer fails."""
        self.client.refuse_calls()
        for watch in self._watches:
            watch.close()
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.gather(self._measuring, return_exceptions=True)
        await asyncio.gather(*(watch.ended() for watch in self._watches))
        await asyncio.gather(*(session.close() for session in self._sessions.values()))
        await self.client.close()

    async def _read_status(self) -> Status:
        """Read the state of the server in use, and count the size of its database. Raises as `Client.read`."""
        status = status_response(await self.client.read(STATUS, b""))
        self.counts.size_bytes, self.counts.quota_bytes = status.size_bytes, status.quota_bytes
        return status

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(self.client.options.status_interval)
            try:
                await self._read_status()
            except StoreFailedError:
                return  # closed
            except StoreError as error:  # the renewals of the session report it
                _LOG.debug("size of etcd not read", reason=str(error))

    async def _range(self, prefix: bytes) -> tuple[list[KV], int]:
        """Read page after page at the revision of the first one."""
        kvs: list[KV] = []
        start, revision = prefix, 0
        while True:
            page = range_response(await self.client.read(RANGE, range_request(prefix, start, PAGE, revision)))
            kvs += page.kvs
            revision = revision or page.revision
            if not page.more:
                return kvs, revision
            start = page.kvs[-1].key + b"\x00"


def _release(version: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        raise StoreError(f"etcd has a version that cannot be read: {version}") from None
