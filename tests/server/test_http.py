from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus

import pytest

from odradek.broker.server import http, http_sockets
from odradek.broker.server.http import MAX_CONNECTIONS, HttpServer, Request, Response
from tests.security.tls.handshakes import client_context
from tests.server.securing import AUTHORITY, secured
from tests.server.serving import Client
from tests.server.tls_client import TlsClient


async def hello(request: Request) -> Response:
    return Response(f"hello {request.headers.get('x-name', 'nobody')}\n".encode())


async def fail(request: Request) -> Response:
    raise ZeroDivisionError


async def large(request: Request) -> Response:
    return Response(b"x" * 10_000_000)


PAGES = {"/hello": hello, "/fail": fail, "/large": large}
Connect = Callable[..., Awaitable[socket.socket]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    servers: list[HttpServer] = []
    sockets: list[socket.socket] = []

    async def open_connection(server: HttpServer | None = None) -> socket.socket:
        if not servers:
            servers.append(server or HttpServer(PAGES))
            addresses.append(await servers[0].start("127.0.0.1", 0))
        connected = socket.socket()
        connected.setblocking(False)
        sockets.append(connected)
        await asyncio.get_running_loop().sock_connect(connected, addresses[0])
        return connected

    addresses: list[tuple[str, int]] = []
    yield open_connection
    for server in servers:
        await server.stop()
        assert not server.open
    for connected in sockets:
        connected.close()


async def receive(connected: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Receive one whole response: its status, headers and body."""
    loop = asyncio.get_running_loop()
    data = b""
    while b"\r\n\r\n" not in data:
        data += await loop.sock_recv(connected, 1) or b"closed\r\n\r\n"
    head = data.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    body = b""
    while rest := int(headers["Content-Length"]) - len(body):
        body += await loop.sock_recv(connected, min(rest, 1 << 20))
    return int(head[0].split()[1]), headers, body


async def send(connected: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connected, data)


async def is_closed(connected: socket.socket) -> bool:
    try:
        return await asyncio.get_running_loop().sock_recv(connected, 1) == b""
    except ConnectionResetError:
        return True


async def test_a_page_is_served_and_the_connection_kept(connect: Connect) -> None:
    connected = await connect()
    for name in ("one", "two"):
        await send(connected, f"GET /hello?query HTTP/1.1\r\nHost: localhost\r\nX-Name: {name}\r\n\r\n".encode())
        status, headers, body = await receive(connected)
        assert (status, body) == (200, f"hello {name}\n".encode())
        assert headers["Connection"] == "keep-alive"


async def test_pipelined_requests_are_answered_one_after_the_other(connect: Connect) -> None:
    connected = await connect()
    await send(connected, b"GET /hello HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\n\r\n")
    assert [(await receive(connected))[0] for _ in range(3)] == [200, 404, 200]


async def test_a_request_in_pieces_is_answered(connect: Connect) -> None:
    connected = await connect()
    for byte in b"GET /hello HTTP/1.1\r\n\r\n":
        await send(connected, bytes([byte]))
        await asyncio.sleep(0)
    assert (await receive(connected))[0] == 200


@pytest.mark.parametrize("request_line", ["GET /hello HTTP/1.0", "GET /hello HTTP/1.1\r\nConnection: close"])
async def test_a_client_that_wants_one_answer_only_is_closed_after_it(connect: Connect, request_line: str) -> None:
    connected = await connect()
    await send(connected, f"{request_line}\r\n\r\n".encode())
    status, headers, _ = await receive(connected)
    assert (status, headers["Connection"]) == (200, "close")
    assert await is_closed(connected)


async def test_head_returns_only_headers(connect: Connect) -> None:
    connected = await connect()
    await send(connected, b"HEAD /hello HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\nConnection: close\r\n\r\n")
    data = b""
    while piece := await asyncio.get_running_loop().sock_recv(connected, 10_000):
        data += piece
    assert data.count(b"hello nobody") == 1
    assert data.count(b"Content-Length: 13\r\n") == 2


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", HTTPStatus.NOT_FOUND),
        (b"POST /hello HTTP/1.1\r\n\r\n", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"GET /fail HTTP/1.1\r\n\r\n", HTTPStatus.INTERNAL_SERVER_ERROR),
    ],
)
async def test_unknown_pages_and_methods_are_errors(connect: Connect, request_text: bytes, status: HTTPStatus) -> None:
    connected = await connect()
    await send(connected, request_text)
    assert (await receive(connected))[0] == status


@pytest.mark.parametrize(
    ("garbage", "status"),
    [
        (b"\x00\x00\x00\x10\x00\x12\x00\x03\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET hello HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /hello\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /hello HTTP/1.1\r\nX: " + b"y" * 10_000, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (b"GET /hello HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (b"GET /hello HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
async def test_garbage_is_refused_and_closed(connect: Connect, garbage: bytes, status: HTTPStatus) -> None:
    connected = await connect()
    await send(connected, garbage)
    assert (await receive(connected))[0] == status
    assert await is_closed(connected)


async def test_a_client_that_sends_no_request_is_closed(connect: Connect) -> None:
    connected = await connect(HttpServer(PAGES, timeout_seconds=0.05))
    await send(connected, b"GET /hello HT")
    assert await is_closed(connected)


async def test_a_client_that_does_not_read_its_answer_is_closed(connect: Connect) -> None:
    server = HttpServer(PAGES, timeout_seconds=0.05)
    connected = await connect(server)
    await send(connected, b"GET /large HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(20):
        while not server.open:  # noqa: ASYNC110 - until it is accepted
            await asyncio.sleep(0)
        while server.open:  # noqa: ASYNC110 - until it is given up
            await asyncio.sleep(0)


async def test_a_large_answer_arrives_whole(connect: Connect) -> None:
    connected = await connect()
    await send(connected, b"GET /large HTTP/1.1\r\n\r\n")
    assert len((await receive(connected))[2]) == 10_000_000


async def never(request: Request) -> Response:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


@pytest.mark.parametrize(
    ("sent", "progress"),
    [
        (b"", 0),
        (b"GET /hello HTTP/1.1\r\nX: slow", 0),
        (b"GET /large HTTP/1.1\r\n\r\n", 1),
        (b"GET /never HTTP/1.1\r\n\r\n", 2),
    ],
    ids=["silent", "incomplete", "not-reading", "being-answered"],
)
async def test_a_probe_is_answered_while_others_have_all_places(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, sent: bytes, progress: int
) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 8)
    server = HttpServer({**PAGES, "/never": never})
    taken = [await connect(server) for _ in range(8)]
    for client in taken:
        await send(client, sent)
    async with asyncio.timeout(20):
        while [each.progress for each in server.open] != [progress] * 8:  # noqa: ASYNC110 - until all are there
            await asyncio.sleep(0)
    probe = await connect()
    await send(probe, b"GET /hello HTTP/1.1\r\n\r\n")
    assert (await receive(probe))[0] == 200
    await drained(taken[0])
    assert len(server.open) == 8


async def drained(connected: socket.socket) -> None:
    """Read until the end or a reset."""
    with suppress(ConnectionResetError):
        while await asyncio.get_running_loop().sock_recv(connected, 1 << 20):
            pass


async def test_a_silent_client_goes_before_one_that_was_answered(connect: Connect) -> None:
    known = await connect()
    for _ in range(MAX_CONNECTIONS - 1):
        await connect()
    await send(known, b"GET /hello HTTP/1.1\r\n\r\n")
    assert (await receive(known))[0] == 200
    for _ in range(MAX_CONNECTIONS - 1):
        await connect()
    await send(known, b"GET /hello HTTP/1.1\r\n\r\n")
    assert (await receive(known))[0] == 200


async def test_silent_handshakes_leave_a_place_to_probes(connect: Connect) -> None:
    server = HttpServer(PAGES, tls_context=lambda: secured().context)
    silent = await connect(server)
    for _ in range(MAX_CONNECTIONS):
        await connect()
    assert await is_closed(silent)
    assert len(server.open) == MAX_CONNECTIONS
    tls = await TlsClient(Client(await connect()), client_context(AUTHORITY)).handshake()
    await tls.send(b"GET /hello HTTP/1.1\r\n\r\n")
    assert (await tls.receive_record()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_connection_without_a_context_of_tls_is_closed_and_keeps_no_place(connect: Connect) -> None:
    server = HttpServer(PAGES, tls_context=lambda: ssl.create_default_context(cafile="missing"))
    assert await is_closed(await connect(server))
    assert not server.open


async def test_stopping_ends_unfinished_answers(connect: Connect) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(request: Request) -> Response:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    server = HttpServer({"/endless": endless})
    connected = await connect(server)
    await send(connected, b"GET /endless HTTP/1.1\r\n\r\n")
    await begun.wait()
    await server.stop()
    assert cancelled.is_set()
    assert await is_closed(connected)


class Counting:
    """A page of a megabyte that counts how often it was made."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self, request: Request) -> Response:
        self.made += 1
        return Response(b"x" * (1 << 20))


async def test_a_pipelined_request_waits_until_the_answer_before_it_is_sent(connect: Connect) -> None:
    page = Counting()
    connected = await connect(HttpServer({"/page": page}))
    await send(connected, b"GET /page HTTP/1.1\r\n\r\n" * 40)
    async with asyncio.timeout(20):
        while not page.made:  # noqa: ASYNC110 - until the first request is there
            await asyncio.sleep(0)
    for _ in range(2_000):
        await asyncio.sleep(0)
    assert page.made < 20  # as many as the kernel's buffers took, and one more
    assert [len((await receive(connected))[2]) for _ in range(40)] == [1 << 20] * 40
    assert page.made == 40


async def test_requests_do_not_extend_the_timeout_of_a_client_that_does_not_read(connect: Connect) -> None:
    server = HttpServer({"/page": Counting()}, timeout_seconds=0.2)
    connected = await connect(server)
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + 10
    try:
        while loop.time() < give_up_at:
            try:
                connected.send(b"GET /page HTTP/1.1\r\n\r\n")
            except BlockingIOError:  # it is not read, which is right
                pass
            await asyncio.sleep(0)
    except ConnectionError:
        return
    raise AssertionError("the connection is still open")


async def test_a_head_that_is_too_large_is_refused_also_when_it_comes_at_once(connect: Connect) -> None:
    connected = await connect()
    await send(connected, b"GET /hello HTTP/1.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n")
    assert (await receive(connected))[0] == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    assert await is_closed(connected)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9404", "[::1]:9404", "LOCALHOST:9404", "broker.localhost", "10.0.0.7", "desk"]
)
async def test_addresses_and_local_names_are_served_on_loopback(connect: Connect, host: str) -> None:
    connected = await connect()
    await send(connected, f"GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert (await receive(connected))[0] == HTTPStatus.OK


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9404", "127.0.0.1.evil.example", "desk.example", "["])
async def test_a_foreign_name_is_refused_on_loopback(connect: Connect, host: str) -> None:
    connected = await connect()
    for path in ("/hello", "/nothing"):
        await send(connected, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        status, _, body = await receive(connected)
        assert (status, b"hello" in body) == (HTTPStatus.FORBIDDEN, False)


async def test_any_name_is_served_on_a_network_address() -> None:
    server = HttpServer(PAGES)
    _, port = await server.start("0.0.0.0", 0)  # every interface, so any name may lead here
    try:
        with socket.create_connection(("127.0.0.1", port)) as connected:
            connected.setblocking(False)
            await send(connected, b"GET /hello HTTP/1.1\r\nHost: kafka.default.svc:9404\r\n\r\n")
            assert (await receive(connected))[0] == HTTPStatus.OK
    finally:
        await server.stop()


async def test_without_descriptors_clients_wait_and_two_lines_are_logged(
    connect: Connect, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines() -> list[str]:
        return [record.getMessage().partition(" listener")[0] for record in caplog.records if record.name != "asyncio"]

    caplog.set_level("INFO")
    monkeypatch.setattr(http_sockets, "BACK_OFF_SECONDS", 0.01)
    waiting = socket.socket()
    waiting.setblocking(False)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    loop = asyncio.get_running_loop()
    address = (await connect()).getpeername()
    spare = os.dup(0)
    os.close(spare)  # the lowest free descriptor: nothing may be opened from here on
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
    taken: list[int] = []

    async def turn() -> None:
        """One turn of the loop. What an earlier test left open may be closed at any time: take its descriptor."""
        with suppress(OSError):
            taken.append(os.dup(0))
        await asyncio.sleep(0)

    try:
        await loop.sock_connect(waiting, address)
        async with asyncio.timeout(20):
            while lines() != ["accepting paused"]:  # until it has noticed
                await turn()
            tries_until = loop.time() + 0.1
            while loop.time() < tries_until:  # ten attempts
                await turn()
        assert lines() == ["accepting paused"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)
    await send(waiting, b"GET /hello HTTP/1.1\r\n\r\n")
    assert (await receive(waiting))[0] == HTTPStatus.OK
    waiting.close()
    assert lines() == ["accepting paused", "accepting resumed"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
