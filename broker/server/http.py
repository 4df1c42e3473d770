"""A small HTTP/1.1 server for monitoring: Prometheus, probes of orchestrators, browsers.

It serves only GET and HEAD, without bodies; a connection may carry several requests. It must withstand any client:

| client | result |
|---|---|
| sends something else than HTTP, a head over 8 KiB, or a body | an error, and the connection is closed |
| sends its head slowly, or nothing | closed after 10 seconds |
| does not read its answer | closed after 10 seconds; until then its next request is neither read nor handled |
| is the 65th | takes the place of another, so that silent clients cannot keep probes out: see `_make_room` |
| names a host that a server on the loopback interface cannot have | 403: see `http_host` |
| has not finished the handshake of TLS, if there is a context for it | closed after 10 seconds |

So a connection holds at most one answer and the bytes of one read of its socket, 256 KiB. The 10 seconds start with the
connection, with each answer, and when the kernel has taken all of an answer. A request does not restart them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from ssl import SSLContext
from typing import NamedTuple, cast

from odradek.broker.config.endpoints import is_loopback
from odradek.broker.request.context import Address
from odradek.broker.server.http_host import is_local_host
from odradek.broker.server.http_sockets import HttpSockets
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_MAX_HEAD_BYTES = 8 * 1024
MAX_CONNECTIONS = 64
_TIMEOUT_SECONDS = 10.0


class Request(NamedTuple):
    """The path of a request without its query, and its headers by names in lower case.

    `has_certificate`: the client has shown one that an authority of the TLS context has issued.
    """

    path: str
    headers: Mapping[str, str]
    has_certificate: bool = False


class Response(NamedTuple):
    """A response; `content_type` is that of the body, `headers` are further ones."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


Page = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves `pages` by their paths. Call `start` once and `stop` once; nothing is open after `stop`.

    `tls_context` returns the context for the next connection; without it there is no TLS.
    """

    def __init__(
        self,
        pages: Mapping[str, Page],
        timeout_seconds: float = _TIMEOUT_SECONDS,
        tls_context: Callable[[], SSLContext] | None = None,
    ) -> None:
        self.pages = pages
        self.timeout_seconds = timeout_seconds
        self._tls_context = tls_context
        self.open: set[_HttpConnection] = set()
        self._places: dict[_HttpConnection, None] = {}  # those in `open` that are not being closed, the oldest first
        self._sockets: HttpSockets | None = None
        self._own_name: str | None = None  # set if the server listens on the loopback interface only

    def serves_host(self, host: str | None) -> bool:
        """Return whether a request with this Host header (None if it has none) is served."""
        return self._own_name is None or is_local_host(host, self._own_name)

    async def start(self, host: str, port: int) -> Address:
        """Listen, and return the address. Raises OSError."""
        self._sockets = HttpSockets(self._accepted)
        addresses = await self._sockets.start(host, port)
        self._own_name = host if all(is_loopback(address) for address, _ in addresses) else None
        return addresses[0]

    def _accepted(self, connected: socket.socket) -> None:
        if len(self._places) >= MAX_CONNECTIONS:
            self._make_room()
        connection = _HttpConnection(self)
        self.open.add(connection)
        self._places[connection] = None
        connection.connect(connected, self._tls_context)

    def _make_room(self) -> None:
        """Close the oldest connection that waits for a request; without one, the oldest whose answer is not read.

        If all requests are being answered, close the oldest. Bytes of an incomplete request do not make a connection
        younger, an answer does. A probe sends its request at once and is answered within a few turns of the event loop,
        in which fewer connections are accepted than there are places.
        """
        oldest = min(self._places, key=lambda each: each.progress)
        del self._places[oldest]
        oldest.abort()

    def record_answer(self, connection: _HttpConnection) -> None:
        """Make a connection that was sent an answer the youngest."""
        if connection in self._places:
            del self._places[connection]
            self._places[connection] = None

    def remove(self, connection: _HttpConnection) -> None:
        """Remove a connection that is closed."""
        self.open.discard(connection)
        self._places.pop(connection, None)

    async def stop(self) -> None:
        """Close everything now, so that probes detect that the broker has stopped."""
        if self._sockets is None:
            return
        self._sockets.close()
        self._sockets = None
        await asyncio.gather(*(connection.close() for connection in tuple(self.open)))


class _HttpConnection(asyncio.Protocol):
    """One client. A request is answered, and its answer sent, before the next request is read."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._received = bytearray()
        self._connecting: asyncio.Task[None] | None = None
        self._is_aborted = False
        self._transport: asyncio.Transport | None = None
        self._timeout: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._is_sending = False  # the kernel has not taken all of the last answer yet
        self._has_certificate = False

    def connect(self, connected: socket.socket, tls_context: Callable[[], SSLContext] | None) -> None:
        """Serve an accepted socket, which belongs to this object from now on."""
        self._connecting = self._loop.create_task(self._connect(connected, tls_context))
        self._connecting.add_done_callback(partial(self._connected, connected))

    async def _connect(self, connected: socket.socket, tls_context: Callable[[], SSLContext] | None) -> None:
        limit = None if tls_context is None else self._server.timeout_seconds
        await self._loop.connect_accepted_socket(
            lambda: self,
            connected,
            ssl=None if tls_context is None else tls_context(),
            ssl_handshake_timeout=limit,
            ssl_shutdown_timeout=limit,
        )

    def _connected(self, connected: socket.socket, connecting: asyncio.Task[None]) -> None:
        """Close the socket if nothing can be served: the client has disconnected, or the handshake failed."""
        self._connecting = None
        if self._transport is None and not self.lost.done():
            connected.close()
            self._end()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            connecting.result()

    @property
    def progress(self) -> int:
        """0: waits for a request; 1: the client has not read all of its answer; 2: a request is being answered."""
        return 2 if self._answering is not None else int(self._is_sending)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's is one, and no subclass of it
        self._has_certificate = bool(transport.get_extra_info("peercert"))
        if self._is_aborted:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` reports any unsent byte
        self._restart_timeout()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._cancel_timeout()
        if self._answering is not None:
            self._answering.cancel()
        self._end()

    def _end(self) -> None:
        self._server.remove(self)
        self.lost.set_result(None)

    async def close(self) -> None:
        """Close now, and wait until the connection and its task have ended."""
        self.abort()
        answering = self._answering
        await self.lost
        if answering is not None:
            await asyncio.wait([answering])

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._answering is None and not self._is_sending:
            self._next_request()

    def pause_writing(self) -> None:
        """Called by asyncio during a write of which the kernel has not taken all."""
        self._is_sending = True

    def resume_writing(self) -> None:
        """Called by asyncio when the kernel has taken all of it."""
        self._is_sending = False
        if self._answering is None:
            self._continue()

    def _next_request(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if max(end, 0) > _MAX_HEAD_BYTES or (end < 0 and len(self._received) > _MAX_HEAD_BYTES):
            self._received.clear()
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        if end < 0:
            return
        head = bytes(self._received[:end])
        del self._received[: end + 4]
        self._cancel_timeout()
        assert self._transport is not None
        self._transport.pause_reading()
        self._answering = self._loop.create_task(self._answer(head))
        self._answering.add_done_callback(self._answered)

    async def _answer(self, head: bytes) -> None:
        """Answer one request. An exception of a page becomes an error response."""
        request_line, *lines = head.decode("latin-1").split("\r\n")
        method, target, version = ([*request_line.split(" "), "", ""])[:3]
        if not version.startswith("HTTP/1.") or not target.startswith("/"):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        path = target.partition("?")[0]
        page = self._server.pages.get(path)
        if not self._server.serves_host(headers.get("host")):
            response = _error(HTTPStatus.FORBIDDEN, "Host must be an address, a name without a dot, or metrics.host.\n")
        elif method not in ("GET", "HEAD"):
            response = _error(HTTPStatus.METHOD_NOT_ALLOWED)
        elif page is None:
            response = _error(HTTPStatus.NOT_FOUND, "The pages are " + ", ".join(self._server.pages) + ".\n")
        else:
            try:
                response = await page(Request(path, headers, self._has_certificate))
            except Exception as error:  # noqa: BLE001 - a failed page is a response, too
                _LOG.exception("http request failed", error, path=path)
                response = _error(HTTPStatus.INTERNAL_SERVER_ERROR)
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        self._write(response, keep=keep, with_body=method != "HEAD")

    def _answered(self, _: asyncio.Task[None]) -> None:
        self._answering = None
        if self._is_sending:
            self._restart_timeout()
        else:
            self._continue()

    def _continue(self) -> None:
        """Continue with the next request after the last answer was sent."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            self._server.record_answer(self)
            transport.resume_reading()
            self._restart_timeout()
            if self._received:
                self._next_request()

    def _refuse(self, status: HTTPStatus) -> None:
        self._write(_error(status), keep=False, with_body=True)

    def _write(self, response: Response, *, keep: bool, with_body: bool) -> None:
        transport = self._transport
        if transport is None:
            return
        head = (
            f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
            f"Content-Type: {response.content_type}\r\n"
            f"Content-Length: {len(response.body)}\r\n"
            f"Connection: {'keep-alive' if keep else 'close'}\r\n"
        )
        head += "".join(f"{name}: {value}\r\n" for name, value in response.headers) + "\r\n"
        transport.write(head.encode("latin-1") + (response.body if with_body else b""))
        if not keep:
            transport.close()
            self._restart_timeout()  # the client may not read its answer

    def _restart_timeout(self) -> None:
        """Restart the time that the client has to send a request, or to read the last answer."""
        self._cancel_timeout()
        self._timeout = self._loop.call_later(self._server.timeout_seconds, self.abort)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def abort(self) -> None:
        """Close now, in any state."""
        self._is_aborted = True
        if self._transport is not None:
            self._transport.abort()
        elif self._connecting is not None:
            self._connecting.cancel()  # it may wait for a handshake


def _error(status: HTTPStatus, text: str = "") -> Response:
    return Response(f"{status.value} {status.phrase}\n{text}".encode(), status)
