"""A server with the test's own handlers, and clients that are plain sockets."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.apis.table import ROWS
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handler
from odradek.broker.server.connections import Connections
from odradek.broker.server.server import Server
from odradek.broker.testing.clock import ManualClock
from odradek.protocol import header
from odradek.protocol.api import by_name
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.schema import Message

Handle = Callable[[RequestContext, Any], Message | Awaitable[Message | None] | None]

FETCH_VERSION = 12
METADATA_VERSION = 9
PRODUCE_VERSION = 9


class Handlers(dict[int, Handler]):
    """Handlers whose behaviour a test sets: `handlers.on("Fetch", function)`."""

    def on(self, name: str, handle: Handle, error_response: Callable[..., Message | None] | None = None) -> None:
        api = by_name(name)
        self[api.key] = Handler(
            api,
            ROWS[api.key]._replace(min_version=api.min_version, max_version=api.max_version),
            lambda services, context, request: handle(context, request),
            error_response or _ERROR_RESPONSES[name],
        )


_ERROR_RESPONSES: dict[str, Callable[[Any, ErrorCode, str], Message]] = {
    "ApiVersions": lambda request, code, message: ApiVersionsResponse(error_code=code),
    "Metadata": lambda request, code, message: MetadataResponse(
        cluster_id=f"{code.name}: {message}", topics=[MetadataResponseTopic(error_code=code)]
    ),
    "Produce": lambda request, code, message: ProduceResponse(),
    "Fetch": lambda request, code, message: FetchResponse(error_code=code),
}


def default_handlers() -> Handlers:
    handlers = Handlers()
    handlers.on("ApiVersions", lambda context, request: ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)]))
    handlers.on("Metadata", lambda context, request: MetadataResponse(cluster_id="test"))
    return handlers


class Slice:
    """A run of bytes of a file, which records its release."""

    def __init__(self, path: Path, position: int, length: int) -> None:
        self.position = position
        self.length = length
        self._path = path
        self._file: int | None = os.open(path, os.O_RDONLY)

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        assert self._file is not None
        return self._file

    def read(self) -> bytes:
        return os.pread(self.fileno(), self.length, self.position)

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def is_released(self) -> bool:
        return self._file is None


class Client:
    """The other end of a connection: blocking-free reads and writes of frames on the test's loop."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self.socket = connected
        self._loop = asyncio.get_running_loop()
        self.correlation_id = 0

    async def send(self, data: bytes | bytearray) -> None:
        await self._loop.sock_sendall(self.socket, data)

    async def send_request(self, name: str, version: int, request: Message) -> int:
        """Send a request and return its correlation id."""
        self.correlation_id += 1
        await self.send(framed_request(name, version, request, self.correlation_id))
        return self.correlation_id

    async def receive_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = await self._loop.sock_recv(self.socket, min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError(f"closed after {len(data)} of {count} bytes")
            data += piece
        return bytes(data)

    async def receive_some(self, limit: int) -> bytes:
        """Receive what is there, or wait for it; nothing at the end of the stream."""
        return await self._loop.sock_recv(self.socket, limit)

    async def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.receive_exactly(4))
        return await self.receive_exactly(size)

    async def receive_response(self, name: str, version: int) -> tuple[int, Any]:
        return header.decode_response(by_name(name).key, version, await self.receive_frame())

    async def ask(self, name: str, version: int, request: Message) -> Any:
        sent = await self.send_request(name, version, request)
        correlation_id, response = await self.receive_response(name, version)
        assert correlation_id == sent
        return response

    async def is_closed(self) -> bool:
        """Wait for the server to close the connection; fails when it sends something instead."""
        try:
            return await self._loop.sock_recv(self.socket, 1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close with a reset, as a crashed client's host does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def framed_request(name: str, version: int, request: Message, correlation_id: int = 1) -> bytes:
    frame = header.encode_request(header.RequestHeader(by_name(name).key, version, correlation_id, "test"), request)
    return struct.pack(">i", len(frame)) + bytes(frame)


class Serving:
    """A running server and all clients of it."""

    def __init__(self, server: Server, metrics: Metrics, clock: ManualClock, config: CurrentConfig) -> None:
        self.server = server
        self.metrics = metrics
        self.clock = clock
        self.config = config
        self.clients: list[Client] = []

    @property
    def connections(self) -> Connections:
        return self.server.connections

    def set_at_run_time(self, **properties: str) -> None:
        """Set properties for all brokers, as AlterConfigs does; the dots in their names are written as underscores."""
        texts = {name.replace("_", "."): text for name, text in properties.items()}
        self.config.apply(MetadataImage(broker_configs={None: (texts, 1)}))

    async def connect(self, *, receive_buffer: int | None = None, source: str = "127.0.0.1") -> Client:
        host, port = self.server.listeners[0].address
        connecting = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        connecting.setblocking(False)
        if receive_buffer is not None:
            connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if ":" not in host:
            connecting.bind((source, 0))
        client = Client(connecting)
        self.clients.append(client)
        await asyncio.get_running_loop().sock_connect(connecting, (host, port))
        return client

    async def until(self, condition: Callable[[], bool]) -> None:
        """Run the event loop until a condition holds, or until the test's timeout."""
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - conditions of any kind, and nothing is slept through
                await asyncio.sleep(0)


Serve = Callable[..., Awaitable[Serving]]


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log lines at WARNING and above."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
