"""The server's end of one connection: the requests, watches and sessions of one worker.

```
received ─► decode ─► a task for each request ─► answer            at most MOST_REQUESTS at a time; then none is read
                 └──► a task for each watch ───► changes           read from the store only when the worker takes them
                 └──► a task for each session ─► lost, or silent   6 fifths of its time without a byte of the worker
```

So a worker that reads nothing costs the write buffer and nothing more: its watches stay where they are in the store's
history, and its ranges at their page. The time of a session is counted in ticks, so that a pause of this process, in
which it heard nobody, counts for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from odradek.broker.metadata.store.commit import until_reached
from odradek.broker.metadata.store.shared.framing import FramedConnection
from odradek.broker.metadata.store.shared.messages import (
    Check,
    Done,
    EndWatch,
    MalformedMessageError,
    Open,
    Opened,
    Ping,
    Range,
    Request,
    RequestProgress,
    Revoke,
    SessionLost,
    Transact,
    Transacted,
    Watch,
    changes,
    decode_request,
    encode,
    failed,
    pages,
)
from odradek.broker.metadata.store.store import MetadataStore, Session, StoreError, StoreFailedError
from odradek.broker.metadata.store.store import Watch as StoreWatch
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import create_task

_LOG = StructuredLogger(__name__)

MOST_REQUESTS: Final = 256
MOST_WATCHES: Final = 1024
TICKS_PER_TTL: Final = 5
_FINISH_SECONDS: Final = 1.0


class ServedConnection(FramedConnection):
    """`on_start` is called when it exists, `on_end` when it has ended; then `revoke_sessions` has to be awaited."""

    def __init__(
        self,
        store: MetadataStore,
        on_start: Callable[[ServedConnection], None],
        on_end: Callable[[ServedConnection], None],
    ) -> None:
        super().__init__()
        self._store = store
        self._on_start = on_start
        self._on_end = on_end
        self._requests: set[asyncio.Task[None]] = set()
        self._watches: dict[int, tuple[StoreWatch, asyncio.Task[None]]] = {}
        self._sessions: dict[int, tuple[Session, asyncio.Task[None]]] = {}

    def frame_received(self, frame: bytearray) -> None:
        request = decode_request(frame)
        if isinstance(request, Watch):
            self._open_watch(request)
        elif isinstance(request, RequestProgress | EndWatch):
            self._for_watch(request)
        else:
            self._requests.add(task := create_task(self._answer(request)))
            task.add_done_callback(self._answered)
            if len(self._requests) >= MOST_REQUESTS:
                self.pause()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._on_start(self)

    def connection_ended(self) -> None:
        for watch, following in self._watches.values():
            watch.close()
            following.cancel()
        for _, guarding in self._sessions.values():
            guarding.cancel()
        self._on_end(self)

    async def finish(self) -> None:
        """Answer the requests that run, and end; after a second also with a worker that does not read."""
        self.pause()
        try:
            async with asyncio.timeout(_FINISH_SECONDS):
                await asyncio.gather(*self._requests, return_exceptions=True)
                self.close()
                await self.ended.wait()
        except TimeoutError:
            self.abort()
            await self.ended.wait()

    async def revoke_sessions(self) -> None:
        """Revoke all sessions, those included whose opening still runs. For a connection that has ended."""
        await asyncio.gather(*(self._revoke(session) for session, _ in self._sessions.values()))
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def _revoke(self, session: Session) -> None:
        try:
            await until_reached(session.revoke)
        except StoreError as error:
            _LOG.warning(
                "the session of a worker that has ended was not revoked", lease=session.lease, error=str(error)
            )

    async def _answer(self, request: Request) -> None:
        try:
            await self._serve(request)
        except (StoreError, ValueError) as error:
            self.send(encode(failed(request.id, error)))
        except Exception as error:  # noqa: BLE001 - the worker must not wait for ever
            _LOG.exception("a request to the metadata store failed", error)
            self.send(encode(failed(request.id, StoreError(f"the server of the metadata store failed: {error!r}"))))

    async def _serve(self, request: Request) -> None:
        if isinstance(request, Transact):
            result = await self._store.txn(request.when, request.then)
            self.send(encode(Transacted(request.id, result.ok, result.revision)))
        elif isinstance(request, Range):
            await self._range(request)
        elif isinstance(request, Open):
            await self._open_session(request)
        else:
            if isinstance(request, Check):
                await self._store.check(request.prefix)
            elif isinstance(request, Revoke):
                await self._store.revoke(request.lease)
            else:
                assert isinstance(request, Ping)
            self.send(encode(Done(request.id)))

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        if len(self._requests) < MOST_REQUESTS:
            self.resume()

    async def _range(self, request: Range) -> None:
        kvs, revision = await self._store.range(request.prefix)
        for page in pages(request.id, kvs, revision):
            await self.drained()
            if not self.is_open:
                return
            self.send(encode(page))

    async def _open_session(self, request: Open) -> None:
        session = await self._store.session(request.ttl)
        if not self.is_open:
            await self._revoke(session)
            return
        self._sessions[session.lease] = session, create_task(self._guard(session, request.ttl / TICKS_PER_TTL))
        self.send(encode(Opened(request.id, session.lease)))

    async def _guard(self, session: Session, tick: float) -> None:
        """Revoke a session whose worker is silent, and report to the worker when it has ended."""
        silent, received = 0, self.bytes_received
        while silent <= TICKS_PER_TTL and not session.lost.is_set():
            try:
                async with asyncio.timeout(tick):
                    await session.lost.wait()
            except TimeoutError:
                silent = silent + 1 if received == self.bytes_received else 0
                received = self.bytes_received
        if not session.lost.is_set():
            _LOG.warning("a worker is silent, its session is revoked", lease=session.lease)
            await self._revoke(session)
        del self._sessions[session.lease]
        self.send(encode(SessionLost(session.lease)))

    def _open_watch(self, request: Watch) -> None:
        if request.id in self._watches or len(self._watches) >= MOST_WATCHES:
            raise MalformedMessageError(f"watch {request.id} exists, or {MOST_WATCHES} others")
        watch = self._store.watch(request.prefix, request.after)
        self._watches[request.id] = watch, create_task(self._follow(request.id, watch))

    def _for_watch(self, request: RequestProgress | EndWatch) -> None:
        """Apply a request to a watch, which may have failed a moment ago."""
        if request.id not in self._watches:
            return
        watch, following = self._watches[request.id]
        if isinstance(request, RequestProgress):
            watch.request_progress(request.revision)
        else:
            del self._watches[request.id]
            watch.close()
            following.cancel()

    async def _follow(self, id_: int, watch: StoreWatch) -> None:
        try:
            async for batch in watch:
                for part in changes(id_, batch):
                    await self.drained()
                    self.send(encode(part))
            error: StoreError | ValueError = StoreFailedError("the metadata store is closed")
        except (StoreError, ValueError) as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - the worker must not wait for ever
            _LOG.exception("a watch of the metadata store failed", raised)
            error = StoreFailedError(f"the server of the metadata store failed: {raised!r}")
        self._watches.pop(id_, None)
        self.send(encode(failed(id_, error)))
