"""A small HTTP/1.1 server for those who watch a broker: Prometheus, probes of orchestrators, people with a browser.

Only GET and HEAD, without bodies; connections are kept for further requests. It must withstand anything that can
connect to it:

| a client that | gets |
|---|---|
| sends something else than HTTP, a head over 8 KiB, or a body | an error, and is closed |
| sends its head slowly, or nothing | closed after 10 seconds |
| does not read its answer | closed after 10 seconds; its next request is not looked at, and no more of them is read |
| is one of more than 64 | closed at once |
| names a host that a server of the loopback interface cannot have | 403: see `http_host` |

So a connection holds one answer at most, and what one read of its socket brings: 256 KiB. The seconds count from the
connection's begin, from each answer, and from the moment when the system has taken all of an answer. No request begins
them anew.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast

from odradek.broker.request.context import Address
from odradek.broker.server.http_host import is_local_host, is_loopback
from odradek.broker.server.http_sockets import HttpSockets
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_MAX_HEAD_BYTES = 8 * 1024
MAX_CONNECTIONS = 64
_PATIENCE_SECONDS = 10.0


class Request(NamedTuple):
    """A request's path without its query, and its headers by their names in lower case."""

    path: str
    headers: Mapping[str, str]


class Response(NamedTuple):
    """A response; `content_type` belongs to the body."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


Page = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves `pages` by their paths. `start` once, `stop` once; it leaves nothing behind."""

    def __init__(self, pages: Mapping[str, Page], patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self.pages = pages
        self.patience_seconds = patience_seconds
        self.open: set[_HttpConnection] = set()
        self._sockets: HttpSockets | None = None
        self._connecting: set[asyncio.Task[None]] = set()
        self._pending = 0  # connections that are accepted, and not in `open` yet
        self._own_name: str | None = None  # while only this machine is served

    def serves_host(self, host: str | None) -> bool:
        """Whether a request with this Host header, or None, is to be answered."""
        return self._own_name is None or is_local_host(host, self._own_name)

    async def start(self, host: str, port: int) -> Address:
        """Listen, and return the address. Raises OSError."""
        self._sockets = HttpSockets(self._accepted)
        addresses = await self._sockets.start(host, port)
        self._own_name = host if all(is_loopback(address) for address, _ in addresses) else None
        return addresses[0]

    def _accepted(self, connected: socket.socket) -> None:
        if len(self.open) + self._pending >= MAX_CONNECTIONS:
            connected.close()
            return
        self._pending += 1
        connecting = asyncio.get_running_loop().create_task(self._connect(connected))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)

    async def _connect(self, connected: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: _HttpConnection(self), connected)
        except OSError:  # it has gone already
            self._pending -= 1
            connected.close()

    def opened(self, connection: _HttpConnection) -> None:
        """A connection can be served now."""
        self._pending -= 1
        self.open.add(connection)

    async def stop(self) -> None:
        """Close everything now: whoever asks how a broker is sees that it is gone."""
        if self._sockets is None:
            return
        self._sockets.close()
        self._sockets = None
        await asyncio.gather(*self._connecting)
        await asyncio.gather(*(connection.close() for connection in tuple(self.open)))


class _HttpConnection(asyncio.Protocol):
    """One client. A request is answered, and its answer sent, before the next one of the connection is looked at."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._is_sending = False  # the system has not taken all of the last answer yet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's is one, and no subclass of it
        self._server.opened(self)
        transport.set_write_buffer_limits(high=0)  # to be told of anything that is unsent
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._server.open.discard(self)
        self.lost.set_result(None)
        self._transport = None
        self._stop_waiting()
        if self._answering is not None:
            self._answering.cancel()

    async def close(self) -> None:
        """Close now, and wait until nothing is left."""
        self._give_up()
        answering = self._answering
        await self.lost
        if answering is not None:
            await asyncio.wait([answering])

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._answering is None and not self._is_sending:
            self._next_request()

    def pause_writing(self) -> None:
        """The system has not taken all of an answer; asyncio calls this from within the write."""
        self._is_sending = True

    def resume_writing(self) -> None:
        """The system has taken all of it."""
        self._is_sending = False
        if self._answering is None:
            self._go_on()

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
        self._stop_waiting()
        assert self._transport is not None
        self._transport.pause_reading()
        self._answering = self._loop.create_task(self._answer(head))
        self._answering.add_done_callback(self._answered)

    async def _answer(self, head: bytes) -> None:
        """Answer one request. Raises nothing: what a page raises becomes an answer."""
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
            response = _error(HTTPStatus.NOT_FOUND, "There are " + ", ".join(self._server.pages) + ".\n")
        else:
            try:
                response = await page(Request(path, headers))
            except Exception as error:  # noqa: BLE001 - a page that fails is told as such
                _LOG.exception("http request failed", error, path=path)
                response = _error(HTTPStatus.INTERNAL_SERVER_ERROR)
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        self._write(response, keep=keep, with_body=method != "HEAD")

    def _answered(self, _: asyncio.Task[None]) -> None:
        self._answering = None
        if self._is_sending:
            self._wait()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """The last answer is sent: look at the next request."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.resume_reading()
            self._wait()
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
            f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
        )
        transport.write(head.encode("latin-1") + (response.body if with_body else b""))
        if not keep:
            transport.close()
            self._wait()  # a client that does not read its answer

    def _wait(self) -> None:
        """Give the client so long to send a request, and to read the answer to the last one."""
        self._stop_waiting()
        self._patience = self._loop.call_later(self._server.patience_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _error(status: HTTPStatus, text: str = "") -> Response:
    return Response(f"{status.value} {status.phrase}\n{text}".encode(), status)
