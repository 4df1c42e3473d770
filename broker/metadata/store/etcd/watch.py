"""One watch: a stream of one endpoint at a time, from which batches are queued for the owner.

```
connect ─► create the watch at `reached` ─► confirmed ─► request progress, read ─┐
   ▲                                                         ▲───────────────────┤
   └── next endpoint ◄── error, end, or silence ◄────────────────────────────────┘
```

Progress is requested every 0.5 s, and at once for a caller that waits for a revision. The answer shows that the stream
is alive, and moves the owner's revision past foreign keys. A server answers only when it has sent every change, and
with its own revision, which may be older than one that another server has reported; then the request is repeated.

A stream that is silent for 1.5 s is left for the next endpoint. That doubles while nothing arrives, because a server
that searches a long history is silent too.

Requests follow the confirmation: before it, a server may report progress ahead of changes that it has to send.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio

from odradek.broker.metadata.store.etcd.client import Client
from odradek.broker.metadata.store.etcd.endpoints import Endpoint
from odradek.broker.metadata.store.etcd.errors import (
    NoAnswerError,
    NotServedError,
    TokenRefusedError,
    error_of_text,
    store_error,
)
from odradek.broker.metadata.store.etcd.messages import (
    PROGRESS_REQUEST,
    WATCH,
    WatchResponse,
    watch_request,
    watch_response,
)
from odradek.broker.metadata.store.etcd.revisions import Revisions
from odradek.broker.metadata.store.store import (
    Batch,
    CompactedError,
    StoreError,
    StoreFailedError,
)
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

PROGRESS_INTERVAL = 0.5
SILENCE = 1.5
_MOST_SILENCE = 60.0
_FIRST_REPETITION = 0.01
"""Seconds until a request is repeated whose answer was too old; doubled each time."""
_REFUSED_PAUSE = 1.0
_QUEUED = 256
"""The most batches that wait for the owner; more stay in the stream, whose window etcd respects."""


class EtcdWatch:
    """A `Watch`. It goes on until it is closed, or has raised `CompactedError`, whatever else fails."""

    def __init__(self, client: Client, prefix: bytes, after: int) -> None:
        self._client = client
        self._prefix = prefix
        self._reached = after
        self._returned = after
        self._awaited = 0
        self._is_awaited = False
        self._silence = SILENCE
        self._progress_due = asyncio.Event()
        self._batches: asyncio.Queue[Batch | None] = asyncio.Queue(_QUEUED)
        self._error: StoreError | None = None
        self._closed = False
        self._following = asyncio.get_running_loop().create_task(self._run(), name="etcd watch")

    def __aiter__(self) -> EtcdWatch:
        return self

    async def __anext__(self) -> Batch:
        while not self._closed:
            if self._error is not None and self._batches.empty():
                raise self._error
            batch = await self._batches.get()
            if batch is not None and not self._closed:
                return batch
        raise StopAsyncIteration

    def request_progress(self, revision: int) -> None:
        self._awaited = max(self._awaited, revision)
        self._is_awaited = True
        self._progress_due.set()

    def close(self) -> None:
        self._closed = True
        self._following.cancel()
        self._wake()

    @property
    def is_over(self) -> bool:
        return self._following.done()

    async def ended(self) -> None:
        """Return when nothing runs any more, after `close`."""
        await asyncio.gather(self._following, return_exceptions=True)

    def _wake(self) -> None:
        """Wake the owner if it waits for a batch; a full queue means that it does not."""
        if not self._batches.full():
            self._batches.put_nowait(None)

    async def _run(self) -> None:
        try:
            await self._follow()
        except StoreError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - the owner must not wait for ever
            self._error = StoreFailedError(f"etcd watch: {error!r}")
        finally:
            self._wake()

    async def _follow(self) -> None:
        """Follow one stream after the other. Raises `CompactedError`, and `StoreFailedError` if the store is closed."""
        while True:
            try:
                endpoint = await self._client.connected()
            except StoreFailedError:
                raise
            except StoreError as error:
                _LOG.debug("etcd watch waits", error=str(error))
                continue
            try:
                await self._follow_one(endpoint)
                self._client.options.counts.watch_restarts += 1
            except CompactedError:
                self._client.options.counts.compactions += 1
                raise
            except StoreError as error:
                # Only an operator can correct it; until then the owner keeps what it has.
                _LOG.debug("etcd watch refused", error=str(self._client.refused(error)))
                await asyncio.sleep(_REFUSED_PAUSE)

    async def _follow_one(self, endpoint: Endpoint) -> None:
        """Follow a stream of `endpoint` until it breaks. Raises other errors of etcd."""
        try:
            await self._stream(endpoint)
        except (NoAnswerError, NotServedError, TimeoutError) as error:
            _LOG.debug("etcd watch interrupted", endpoint=endpoint.address, error=repr(error), reached=self._reached)
            if isinstance(error, TimeoutError):
                self._silence = min(self._silence * 2, _MOST_SILENCE)
            await self._client.leave(endpoint, error)

    async def _stream(self, endpoint: Endpoint) -> None:
        token, metadata = await self._client.metadata(endpoint)
        call = endpoint.stream(WATCH, metadata)
        requesting: asyncio.Task[None] | None = None
        try:
            # Revision 0 would mean "from now on".
            await call.write(watch_request(self._prefix, max(self._reached, 1)))
            _check(await self._read(call), endpoint)
            requesting = asyncio.get_running_loop().create_task(self._request_progress(call))
            await self._receive(call, endpoint)
        except TokenRefusedError:
            self._client.authentication.forget(token)
            if not self._client.authentication.has_user:
                raise
        except grpc.aio.AioRpcError as error:
            raise store_error(error, endpoint.address) from error
        except (grpc.aio.BaseError, asyncio.InvalidStateError) as error:  # it has ended before it was written to
            raise NoAnswerError(f"etcd at {endpoint.address}: {error!r}") from error
        finally:
            if requesting is not None:
                requesting.cancel()
                await asyncio.gather(requesting, return_exceptions=True)
            call.cancel()

    async def _receive(self, call: Any, endpoint: Endpoint) -> None:
        revisions = Revisions(self._reached)
        while True:
            response = await self._read(call)
            _check(response, endpoint)
            for batch in revisions.batches(response):
                self._silence = SILENCE
                self._client.answered()
                await self._queue(batch)
            self._reached = revisions.reached

    async def _read(self, call: Any) -> WatchResponse:
        async with asyncio.timeout(self._silence):
            message = await call.read()
        if message is grpc.aio.EOF:
            raise NoAnswerError("the stream has ended")
        return watch_response(message)

    async def _queue(self, batch: Batch) -> None:
        """Queue a batch; progress only if it is awaited or new."""
        is_awaited = self._is_awaited and batch.revision >= self._awaited
        if is_awaited:
            self._is_awaited = False
        elif not batch.changes and batch.revision <= self._returned:
            return
        self._returned = batch.revision
        await self._batches.put(batch)

    async def _request_progress(self, call: Any) -> None:
        repetition = _FIRST_REPETITION
        while True:
            self._progress_due.clear()
            await call.write(PROGRESS_REQUEST)
            interval = PROGRESS_INTERVAL
            if self._is_awaited:
                interval = repetition = min(repetition * 2, PROGRESS_INTERVAL)
            else:
                repetition = _FIRST_REPETITION
            try:
                async with asyncio.timeout(interval):
                    await self._progress_due.wait()
            except TimeoutError:
                continue


def _check(response: WatchResponse, endpoint: Endpoint) -> None:
    """Raise the error with which etcd has cancelled the watch."""
    if response.compact_revision:
        raise CompactedError(f"changes up to revision {response.compact_revision} are no longer kept")
    if response.canceled:
        error = error_of_text(response.cancel_reason, endpoint.address)
        raise error if type(error) is not StoreError else NoAnswerError(str(error))
