"""A client of a TLS listener whose records a test may split, delay or spoil: TLS in memory over a plain `Client`."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable, Iterator
from typing import Any

from odradek.protocol import header
from odradek.protocol.api import by_name
from odradek.protocol.schema import Message
from tests.server.serving import Client, framed_request

Pieces = Callable[[bytes], Iterator[bytes]]


def whole(data: bytes) -> Iterator[bytes]:
    yield data


class TlsClient:
    """Sends what OpenSSL makes in the pieces that `pieces` cuts it into."""

    early = b""
    """The first requests, if they are sent together with the end of the handshake."""

    def __init__(
        self,
        client: Client,
        context: ssl.SSLContext,
        pieces: Pieces = whole,
        host: str = "localhost",
        session: ssl.SSLSession | None = None,
    ) -> None:
        self.client = client
        self.pieces = pieces
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname=host, session=session)
        self._received = bytearray()

    async def handshake(self) -> TlsClient:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.flush()
                await self._receive()
            else:
                if self.early:
                    self.tls.write(self.early)
                await self.flush()
                return self

    async def flush(self) -> None:
        """Send what OpenSSL has made."""
        made = self._out.read()
        if made:
            for piece in self.pieces(made):
                await self.client.send(piece)

    async def send(self, data: bytes, record: int = 16 * 1024) -> None:
        """Send in records of this size."""
        for start in range(0, len(data), record):
            self.tls.write(data[start : start + record])
        await self.flush()

    async def receive_exactly(self, count: int, piece: int = 1 << 16) -> bytes:
        while len(self._received) < count:
            try:
                data = self.tls.read(piece)
            except ssl.SSLWantReadError:
                await self._receive(piece)
            else:
                if not data:
                    raise EOFError
                self._received += data
        data, self._received = bytes(self._received[:count]), self._received[count:]
        return data

    async def receive_record(self) -> bytes:
        """Return the content of the next record; OpenSSL never reads two at once."""
        while True:
            try:
                return self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                await self._receive()

    async def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.receive_exactly(4))
        return await self.receive_exactly(size)

    async def ask(self, name: str, version: int, request: Message, record: int = 16 * 1024) -> Any:
        await self.send(framed_request(name, version, request), record)
        return header.decode_response(by_name(name).key, version, await self.receive_frame())[1]

    async def _receive(self, piece: int = 1 << 16) -> None:
        received = await self.client.receive_some(piece)
        if received:
            self._in.write(received)
        else:
            self._in.write_eof()
