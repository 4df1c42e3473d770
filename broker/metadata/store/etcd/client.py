"""Calls to etcd: one attempt at one endpoint, with a time limit, then the next endpoint.

```
read    each endpoint once ─► StoreUnreachableError       repeating a read, a grant or a revocation does no harm
write   one attempt ─► UnknownOutcomeError                the caller sends the identical transaction again
```

A write is only sent over a connection that exists. So without any it was certainly not applied, and the error is
`StoreUnreachableError`. After a round of failures a call waits for a moment, because its caller repeats it.
"""

from __future__ import annotations

import asyncio

import grpc.aio

from odradek.broker.metadata.store.etcd.authentication import Authentication
from odradek.broker.metadata.store.etcd.endpoints import Endpoint, Endpoints, Metadata
from odradek.broker.metadata.store.etcd.errors import (
    NoAnswerError,
    NotServedError,
    TokenRefusedError,
    connection_error,
    store_error,
    with_advice,
)
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.store import (
    StoreAccessError,
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreUnreachableError,
    UnknownOutcomeError,
)
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

PAUSE = 0.1
"""Seconds between two rounds of attempts at all endpoints."""

REFUSAL_INTERVAL = 60.0
"""Seconds between two log lines about the same refusal."""

_LEADER = ("hasleader", "true")
"""With this header a member without a leader refuses a call at once, and ends a stream when it loses its leader."""


class Client:
    """The calls of one store. Belongs to one event loop."""

    def __init__(self, options: EtcdOptions) -> None:
        self.options = options
        self.endpoints = Endpoints(options)
        self.authentication = Authentication(options)
        self._failures = 0
        self._is_failing = False
        self._last_refusal = ("", 0.0)
        self._closed = False

    def refuse_calls(self) -> None:
        """Make every later call raise `StoreFailedError`."""
        self._closed = True

    async def close(self) -> None:
        """Wait for running calls, and close the connections, after `refuse_calls`."""
        await self.endpoints.close(self.authentication.seconds)

    def check_open(self) -> None:
        if self._closed:
            raise StoreFailedError("the metadata store is closed")

    async def read(self, method: str, request: bytes) -> bytes:
        """Make a call that may be repeated. Raises `StoreError`, never `UnknownOutcomeError`."""
        failed: StoreError | None = None
        for _ in self.endpoints.all:
            endpoint = await self.connected()
            try:
                return await self.call(endpoint, method, request)
            except (NoAnswerError, NotServedError) as error:
                failed = error
        raise StoreUnreachableError(f"no etcd server answers: {failed}")

    async def write(self, method: str, request: bytes) -> bytes:
        """Make a call that is never repeated here. Raises `StoreError`."""
        endpoint = await self.connected()
        try:
            return await self.call(endpoint, method, request)
        except NoAnswerError as error:
            self.options.counts.unknown_outcomes += 1
            raise UnknownOutcomeError(str(error)) from error
        except NotServedError as error:
            raise StoreUnreachableError(str(error)) from error

    async def connected(self) -> Endpoint:
        """Return the endpoint in use, or the first after it that has a connection. Raises `StoreUnreachableError`."""
        self.check_open()
        for _ in self.endpoints.all:
            endpoint = self.endpoints.current
            if await endpoint.is_connected(self.options.timeout):
                return endpoint
            self.options.counts.unconnected += 1
            self.endpoints.leave(endpoint)
        error = await self._unreachable()
        self._log_failure(error)
        await asyncio.sleep(self.options.timeout)
        raise error

    async def leave(self, endpoint: Endpoint, error: BaseException) -> None:
        """Note that `endpoint` gave no answer. Waits after as many failures in a row as there are endpoints."""
        self.endpoints.leave(endpoint)
        self._log_failure(error)
        self._failures += 1
        if self._failures % len(self.endpoints.all) == 0:
            await asyncio.sleep(PAUSE)

    def answered(self) -> None:
        """Note that etcd has answered."""
        self._failures = 0
        if self._is_failing:
            self._is_failing = False
            _LOG.info("etcd answers again", endpoint=self.endpoints.current.address)

    async def call(self, endpoint: Endpoint, method: str, request: bytes) -> bytes:
        """Make one attempt at `endpoint`, and a second one if etcd has refused the token of the first.

        Raises `NoAnswerError` or `NotServedError` after it has left the endpoint, or another `StoreError`.
        """
        self.check_open()
        try:
            response = await self._with_token(endpoint, method, request)
        except (NoAnswerError, NotServedError) as error:
            self.check_open()
            if isinstance(error, NoAnswerError):
                self.options.counts.unanswered += 1
            await self.leave(endpoint, error)
            raise
        except StoreError as error:
            raise self.refused(error) from error
        self.answered()
        return response

    def refused(self, error: StoreError) -> StoreError:
        """Count and log an error that an operator must correct; return it, with advice."""
        if isinstance(error, TokenRefusedError):
            error = StoreAccessError(str(error))
        if isinstance(error, StoreAccessError):
            error = with_advice(error)
            self.options.counts.access_refused += 1
            self._log_refusal("etcd refuses access", error)
        elif isinstance(error, StoreFullError):
            self.options.counts.full += 1
            self._log_refusal("etcd is full: compact and defragment it, then disarm its alarm", error)
        return error

    def _log_failure(self, error: BaseException) -> None:
        """Log the first of several failures in a row."""
        if not self._is_failing:
            self._is_failing = True
            _LOG.warning("etcd gives no answer, trying the next endpoint", error=str(error) or "it is silent")

    def _log_refusal(self, event: str, error: StoreError) -> None:
        """Log a refusal, and a repeated one once in a while."""
        text, now = str(error), asyncio.get_running_loop().time()
        last, logged = self._last_refusal
        if text != last or now >= logged + REFUSAL_INTERVAL:
            self._last_refusal = (text, now)
            _LOG.error(event, error=text)

    async def metadata(self, endpoint: Endpoint) -> tuple[str, Metadata]:
        """Return the token for a call, and the headers with it. Raises what `Authentication.token` raises."""
        token = await self.authentication.token(endpoint)
        return token, (_LEADER, ("token", token)) if token else (_LEADER,)

    async def _with_token(self, endpoint: Endpoint, method: str, request: bytes) -> bytes:
        try:
            return await self._attempt(endpoint, method, request)
        except TokenRefusedError:
            if not self.authentication.has_user:
                raise
        return await self._attempt(endpoint, method, request)

    async def _attempt(self, endpoint: Endpoint, method: str, request: bytes) -> bytes:
        token, metadata = await self.metadata(endpoint)
        self.options.counts.attempts += 1
        sent = asyncio.get_running_loop().time()
        try:
            response = await endpoint.call(method, request, self.options.timeout, metadata)
        except grpc.aio.AioRpcError as rpc_error:
            error = store_error(rpc_error, endpoint.address)
            if not isinstance(error, NoAnswerError):
                self._count_answer(sent)
            if isinstance(error, TokenRefusedError):
                self.authentication.forget(token)
            raise error from rpc_error
        except grpc.aio.BaseError as error:  # the library's own state, for example a connection that is being closed
            raise NoAnswerError(f"etcd at {endpoint.address}: {error!r}") from error
        self._count_answer(sent)
        return response

    def _count_answer(self, sent: float) -> None:
        self.options.counts.answered.record_all((asyncio.get_running_loop().time() - sent,))

    async def _unreachable(self) -> StoreError:
        """Return the error of a store without any connection, with the reason of each endpoint."""
        self.check_open()
        endpoints = self.endpoints.all
        reasons = await asyncio.gather(*(each.why_not_connected(self.options.timeout) for each in endpoints))
        error = connection_error({each.address: why for each, why in zip(endpoints, reasons, strict=True)})
        return self.refused(error) if isinstance(error, StoreAccessError) else error
