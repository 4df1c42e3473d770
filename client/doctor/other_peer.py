"""The kind of a server that is no Kafka broker, identified by its response.

| response | to | kind |
|---|---|---|
| a TLS handshake or alert | a TLS client hello | a TLS listener |
| `HTTP/…` | an HTTP request in plain text | a web server |
| anything else | the same | another protocol |
| the end of the connection | the same | a proxy without a server, or a server that refused |
| nothing in time | the same | silent |

The only module besides `odradek.client.network.transport` that opens sockets, and the only one with TLS.
"""

from __future__ import annotations

import asyncio
import ssl
from enum import Enum

from odradek.client.config import Address

_HTTP_REQUEST = b"GET / HTTP/1.0\r\n\r\n"


class Peer(Enum):
    """The kind of a server."""

    TLS = "TLS"
    HTTP = "HTTP"
    OTHER = "another protocol"
    CLOSES = "closes"
    SILENT = "silent"


async def identify(address: Address, seconds: float) -> Peer:
    """Identify the server, in `seconds` for each attempt. Opens and closes two connections."""
    try:
        if await _speaks_tls(address, seconds):
            return Peer.TLS
        async with asyncio.timeout(seconds):
            received = await _response(address)
    except TimeoutError:
        return Peer.SILENT
    except OSError:
        return Peer.CLOSES
    if received.startswith(b"HTTP/"):
        return Peer.HTTP
    return Peer.OTHER if received else Peer.CLOSES


async def _speaks_tls(address: Address, seconds: float) -> bool:
    """Whether a handshake succeeds or fails with a TLS alert. The certificate is not verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(*address, ssl=context)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except (OSError, TimeoutError):
        return False
    await _abort(writer)
    return True


async def _response(address: Address) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(_HTTP_REQUEST)
        return await reader.read(16)
    finally:
        await _abort(writer)


async def _abort(writer: asyncio.StreamWriter) -> None:
    """Close a connection without the shutdown messages that TLS would wait for."""
    writer.transport.abort()
    try:
        await writer.wait_closed()
    except OSError:
        pass  # the peer has closed it already
