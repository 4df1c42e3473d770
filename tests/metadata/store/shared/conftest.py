"""A store in memory, a server of it, and workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.shared.messages import Answer, Request, decode_answer, encode
from odradek.broker.metadata.store.shared.server import FILE_NAME, StoreServer
from odradek.broker.metadata.store.shared.store import SharedStore

Connect = Callable[[], SharedStore]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The socket."""
    return tmp_path / FILE_NAME


@pytest.fixture
async def owned() -> AsyncIterator[InMemoryStore]:
    """The store that is served."""
    store = InMemoryStore()
    yield store
    await store.close()


@pytest.fixture
async def server(owned: InMemoryStore, path: Path) -> AsyncIterator[StoreServer]:
    server = StoreServer(owned, path)
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def connect(path: Path) -> AsyncIterator[Connect]:
    """Makes workers; the server may start later."""
    async with AsyncExitStack() as stack:

        def connect() -> SharedStore:
            store = SharedStore(path, SystemClock())
            stack.push_async_callback(store.close)
            return store

        yield connect


class RawWorker:
    """A connection that sends and reads what a test wants: `async with RawWorker(path) as worker`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_unix_connection(self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    def send(self, request: Request) -> None:
        self.writer.write(frame(encode(request)))

    async def answer(self) -> Answer:
        length = int.from_bytes(await self.reader.readexactly(4))
        return decode_answer(await self.reader.readexactly(length))

    async def is_closed(self) -> bool:
        """Wait until the server closes the connection."""
        try:
            return await asyncio.wait_for(self.reader.read(), 10) == b""
        except ConnectionResetError:
            return True


def frame(message: bytes) -> bytes:
    return len(message).to_bytes(4) + message
