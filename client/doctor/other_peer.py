"""Who answers at a port where no Kafka broker does, found out by what comes back.

| comes back | to | means |
|---|---|---|
| a TLS handshake, or an alert | a TLS client hello | a TLS listener |
| `HTTP/…` | a request in plain text | a web server |
| anything else | the same | another protocol |
| the end of the connection | the same | nobody who wants to talk |
| nothing in time | the same | nobody, or one who waits |

The only module beside `odradek.client.network.connection` that knows of TLS.
"""

from __future__ import annotations

import asyncio
import ssl
from enum import Enum

from odradek.client.config import Address

_QUESTION = b"GET / HTTP/1.0\r\n\r\n"


class Peer(Enum):
    """Who it is."""

    TLS = "TLS"
    HTTP = "HTTP"
    OTHER = "another protocol"
    CLOSES = "closes"
    SILENT = "silent"


async def identify(address: Address, seconds: float) -> Peer:
    """Find out who listens there, in `seconds` for each attempt. Two connections are made and closed."""
    try:
        if await _speaks_tls(address, seconds):
            return Peer.TLS
        async with asyncio.timeout(seconds):
            said = await _answer(address)
    except TimeoutError:
        return Peer.SILENT
    except OSError:
        return Peer.CLOSES
    if said.startswith(b"HTTP/"):
        return Peer.HTTP
    return Peer.OTHER if said else Peer.CLOSES


async def _speaks_tls(address: Address, seconds: float) -> bool:
    """Whether a handshake succeeds, or is refused in the words of TLS; whoever the peer is, it is not trusted."""
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


async def _answer(address: Address) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(_QUESTION)
        return await reader.read(16)
    finally:
        await _abort(writer)


async def _abort(writer: asyncio.StreamWriter) -> None:
    """End a connection without the farewells that TLS would wait for."""
    writer.transport.abort()
    try:
        await writer.wait_closed()
    except OSError:
        pass  # the peer was quicker
