"""`SharedStore`: the metadata store that another process on this machine owns, as `StoreServer` serves it.

```
connect ─► connected ─► lost: sessions end; transactions without an answer are unknown; watches wait
   ▲                      │
   └───── pause ◄─────────┘      0.01 s, doubled up to 0.5 s until the server answers
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from odradek.broker.clock import Clock
from odradek.broker.metadata.store.shared.connection import Connection, ConnectionLostError, Pushed
from odradek.broker.metadata.store.shared.messages import (
    Check,
    Done,
    MalformedMessageError,
    Open,
    Opened,
    Page,
    Range,
    Request,
    Revoke,
    SessionLost,
    Transacted,
    transact,
)
from odradek.broker.metadata.store.shared.session import SharedSession
from odradek.broker.metadata.store.shared.socket_file import connect
from odradek.broker.metadata.store.shared.watch import SharedWatch
from odradek.broker.metadata.store.store import (
    KV,
    MAX_OPERATIONS,
    Cmp,
    Op,
    StoreAccessError,
    StoreError,
    StoreFailedError,
    StoreUnreachableError,
    TxnResult,
    UnknownOutcomeError,
    check_operations,
)
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

T = TypeVar("T", Done, Page, Transacted, Opened)

_PATIENCE: Final = 0.5
"""Seconds that a call waits for a connection."""
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.5
_CLOSE_SECONDS: Final = 5.0


class SharedStore:
    """Belongs to the event loop that runs when it is created. The server at `path` may start later."""

    max_operations = MAX_OPERATIONS

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._connection: Connection | None = None
        self._connected = asyncio.Event()
        self._failure: StoreError = StoreUnreachableError(f"nobody serves the metadata store at {path} yet")
        self._closed = False
        self._watches: dict[SharedWatch, None] = {}
        self._attempts: dict[int, SharedWatch] = {}
        self._sessions: dict[int, SharedSession] = {}
        self._lost_early: set[int] = set()  # leases that were lost before their caller had them
        self._connecting = asyncio.get_running_loop().create_task(self._stay_connected(), name="shared store")

    async def check(self, prefix: bytes) -> None:
        connection = await self._usable()
        await _answer(connection, Check(connection.next_id(), prefix), Done)

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        connection = await self._usable()
        page = await _answer(connection, Range(connection.next_id(), prefix), Page)
        return page.kvs, page.revision

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        check_operations(when, then)
        connection = await self._usable()
        try:
            answer = await connection.call(transact(connection.next_id(), when, then))
        except ConnectionLostError as error:
            if error.was_sent:
                raise UnknownOutcomeError(str(error)) from error
            raise StoreUnreachableError(str(error)) from error
        result = _expect(answer, Transacted)
        return TxnResult(result.ok, result.revision)

    def watch(self, prefix: bytes, after: int) -> SharedWatch:
        watch = SharedWatch(self._attempts, prefix, after, self._forget)
        if self._closed:
            watch.close()
            return watch
        self._watches[watch] = None
        if self._connection is not None:
            watch.attach(self._connection)
        return watch

    async def session(self, ttl: float) -> SharedSession:
        """As the seam says. If the caller is cancelled, a lease without keys may stay until the connection ends."""
        connection = await self._usable()
        sent = self._clock.boot_time()
        opened = await _answer(connection, Open(connection.next_id(), ttl), Opened)
        session = SharedSession(connection, self._clock, opened.lease, ttl, sent)
        if connection is not self._connection or opened.lease in self._lost_early:
            session.end()
        else:
            self._sessions[opened.lease] = session
        return session

    async def revoke(self, lease: int) -> None:
        connection = await self._usable()
        await _answer(connection, Revoke(connection.next_id(), lease), Done)
        if lease in self._sessions:
            self._sessions[lease].end()  # `SessionLost` follows

    async def close(self) -> None:
        """As the seam says; the server then revokes the sessions that are left."""
        if self._closed:
            return
        self._closed = True
        self._failure = StoreFailedError("the metadata store is closed")
        self._connected.set()
        self._connecting.cancel()
        await asyncio.gather(self._connecting, return_exceptions=True)
        if self._connection is not None:
            connection = self._connection
            await connection.answered(_CLOSE_SECONDS)
            connection.close()
            await connection.ended.wait()
        for watch in tuple(self._watches):
            watch.close()

    async def _usable(self) -> Connection:
        """Return the connection; waits for one up to half a second. Raises `StoreError`."""
        if self._connection is None and not self._closed:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._connected.wait()
            except TimeoutError:
                pass
        if self._connection is None or self._closed:
            raise type(self._failure)(str(self._failure))
        return self._connection

    async def _stay_connected(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                connection = await self._connect()
            except StoreError as error:
                if str(error) != str(self._failure):
                    _LOG.debug("no connection to the metadata store", error=str(error))
                self._failure = error
            else:
                await connection.ended.wait()
                if connection.bytes_received:
                    pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _connect(self) -> Connection:
        try:
            _, connection = await asyncio.get_running_loop().create_unix_connection(
                lambda: Connection(self._pushed, self._lost), sock=connect(self._path)
            )
        except PermissionError as error:
            raise StoreAccessError(f"{self._path} is the socket of another user") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreUnreachableError(f"nobody serves the metadata store at {self._path}: {reason}") from error
        if connection.is_open:
            self._connection = connection
            self._connected.set()
            for watch in tuple(self._watches):
                watch.attach(connection)
        return connection

    def _lost(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        if not self._closed:
            _LOG.warning("connection to the metadata store lost")
            self._failure = StoreUnreachableError("the connection to the metadata store was lost")
            self._connected.clear()
        for session in self._sessions.values():
            session.end()
        self._sessions.clear()
        self._lost_early.clear()
        for watch in self._watches:
            watch.detach()

    def _pushed(self, message: Pushed) -> None:
        if isinstance(message, SessionLost):
            if (session := self._sessions.pop(message.lease, None)) is not None:
                session.end()
            else:
                self._lost_early.add(message.lease)
        elif (watch := self._attempts.get(message.id)) is not None:
            watch.received(message)

    def _forget(self, watch: SharedWatch) -> None:
        self._watches.pop(watch, None)


async def _answer(connection: Connection, request: Request, kind: type[T]) -> T:
    """Make a call that may be repeated."""
    try:
        return _expect(await connection.call(request), kind)
    except ConnectionLostError as error:
        raise StoreUnreachableError(str(error)) from error


def _expect(answer: object, kind: type[T]) -> T:
    if not isinstance(answer, kind):
        raise MalformedMessageError(f"{type(answer).__name__} is no answer to this request")
    return answer
