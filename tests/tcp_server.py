"""A TCP server of a test. Its end ends its connections.

From Python 3.12 on `async with await asyncio.start_server(…)` waits at its end until all connections have ended. A test
that failed while a client was connected did not end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None] | None]


@asynccontextmanager
async def tcp_server(connected: Connected, port: int = 0, **options: Any) -> AsyncIterator[int]:
    """Call `connected` for each connection to a port of loopback, and yield the port's number."""
    transports: list[asyncio.WriteTransport] = []

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[Any, Any, None] | None:
        transports.append(writer.transport)
        return connected(reader, writer)

    server = await asyncio.start_server(accepted, "127.0.0.1", port, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for transport in transports:
            transport.abort()  # a TLS shutdown would wait for a peer that has closed
        await server.wait_closed()
