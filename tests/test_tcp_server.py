from __future__ import annotations

import asyncio

import pytest

from tests.tcp_server import tcp_server


async def test_a_failure_with_an_open_connection_ends_the_connection() -> None:
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    is_connected = asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_connected.set()
        await reader.read()

    async def failing() -> None:
        async with tcp_server(connected) as port:
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            await is_connected.wait()
            raise ZeroDivisionError

    async with asyncio.timeout(60):
        with pytest.raises(ZeroDivisionError):
            await failing()
        [(reader, writer)] = opened
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
