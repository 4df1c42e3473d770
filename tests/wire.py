"""A connection that sends single requests of any API and version, and shows the decoded responses."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from odradek.protocol import header
from odradek.protocol.api import by_key
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import RequestHeader
from odradek.protocol.schema import Message, spec


class Wire:
    """`async with Wire(host, port) as wire: response = await wire.ask(FetchRequest(...), 12)`."""

    def __init__(self, host: str, port: int, client_id: str | None = "wire") -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.correlation_id = 0

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass

    async def ask(self, request: Message, version: int) -> Any:
        """Send a request and return its response."""
        await self.send(request, version)
        return await self.receive(request, version)

    async def send(self, request: Message, version: int) -> None:
        self.correlation_id += 1
        api_key = spec(type(request)).key
        assert api_key is not None
        frame = header.encode_request(RequestHeader(api_key, version, self.correlation_id, self.client_id), request)
        self.writer.write(SIZE_PREFIX.pack(len(frame)) + frame)
        await self.writer.drain()

    async def receive(self, request: Message, version: int) -> Any:
        """Return the next response, which must be to `request`. Raises IncompleteReadError on a closed connection."""
        api_key = spec(type(request)).key
        assert api_key is not None
        (size,) = SIZE_PREFIX.unpack(await self.reader.readexactly(SIZE_PREFIX.size))
        _, response = header.decode_response(api_key, version, await self.reader.readexactly(size))
        assert isinstance(response, by_key(api_key).response)
        return response

    async def is_closed_by_peer(self) -> bool:
        """Wait until the other side has closed the connection, having sent nothing more."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True
