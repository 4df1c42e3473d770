"""Listeners on loopback that are no brokers, or brokers with rare responses."""

from __future__ import annotations

import asyncio
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from odradek.protocol.api import by_name
from odradek.protocol.header import decode_request_header, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.schema import Message
from tests.peers.availability import program
from tests.tcp_server import tcp_server

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answers = Mapping[str, Callable[[int], Message]]
"""The response of a broker on the given port, by the name of the API."""

_SIZE = struct.Struct(">i")


@asynccontextmanager
async def listening(conversation: Conversation, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The address of a listener that runs this function for each connection."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await conversation(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with tcp_server(connected, ssl=tls) as port:
        yield f"127.0.0.1:{port}"


class Silent:
    """A listener that reads and never responds."""

    def __init__(self) -> None:
        self._heard = asyncio.Semaphore(0)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        async with listening(self._listen) as address:
            yield address

    async def connected(self, count: int) -> None:
        """Wait until so many connections have sent something."""
        for _ in range(count):
            await self._heard.acquire()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        self._heard.release()
        await reader.read()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def mail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"500 5.5.1 What do you mean?\r\n")
    await writer.drain()


def broker(answers: Answers) -> Conversation:
    """A broker that serves only the given APIs, in all our versions, and closes the connection for any other."""
    served = [ApiVersion(api.key, api.min_version, api.max_version) for api in map(by_name, ("ApiVersions", *answers))]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        while True:
            (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
            header, _ = decode_request_header(await reader.readexactly(size))
            answer: Message
            if header.api_key == by_name("ApiVersions").key:
                answer = ApiVersionsResponse(api_keys=served)
            else:
                [name] = [name for name in answers if by_name(name).key == header.api_key]
                answer = answers[name](port)
            frame = encode_response(header.api_key, header.api_version, header.correlation_id, answer)
            writer.write(_SIZE.pack(len(frame)) + frame)
            await writer.drain()

    return serve


def tls_context(directory: Path) -> ssl.SSLContext:
    """The TLS context of a server with an untrusted certificate."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    command = [program("openssl", "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files: list[Any] = ["-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([*command, *files], capture_output=True, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
