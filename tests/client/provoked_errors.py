"""The types of errors that tests have provoked, and servers that provoke them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from odradek.client import (
    ClientError,
)
from tests.tcp_server import tcp_server

PROVOKED: set[type[ClientError]] = set()


F = TypeVar("F")


def provokes(*types: type[ClientError]) -> Callable[[F], F]:
    PROVOKED.update(types)
    return lambda test: test


@asynccontextmanager
async def listening(serve: Any, **options: Any) -> AsyncIterator[str]:
    """A TCP server on a free port that runs `serve(reader, writer)`."""

    served: list[asyncio.Task[Any] | None] = []

    async def and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()

    async with tcp_server(and_close, **options) as port:
        yield f"127.0.0.1:{port}"
    await asyncio.gather(*filter(None, served), return_exceptions=True)
