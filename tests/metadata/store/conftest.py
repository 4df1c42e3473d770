"""Stores for the tests of their common behaviour: in memory, SQLite, both of them served on a socket, and etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.shared.server import FILE_NAME as SOCKET
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.shared.store import SharedStore
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.metadata.store.store import MetadataStore, Put
from tests.peers import etcd


@pytest.fixture(scope="session")
def etcd_cluster() -> Iterator[etcd.Cluster]:
    """One member that all tests share, each with keys of its own."""
    with etcd.running(1) as cluster:
        yield cluster


@pytest.fixture(params=["memory", "sqlite", "shared memory", "shared sqlite", pytest.param("etcd", marks=etcd.MARKS)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataStore]:
    async with AsyncExitStack() as stack:
        opened: MetadataStore
        if request.param == "etcd":
            endpoints = tuple(request.getfixturevalue("etcd_cluster").endpoints)
            opened = EtcdStore(EtcdOptions(endpoints), SystemClock())
        else:
            is_memory = request.param.endswith("memory")
            opened = InMemoryStore() if is_memory else await SqliteStore.open(tmp_path / FILE_NAME)
        stack.push_async_callback(opened.close)
        if request.param.startswith("shared"):
            server = StoreServer(opened, tmp_path / SOCKET)
            await server.start()
            stack.push_async_callback(server.close)
            opened = SharedStore(tmp_path / SOCKET, SystemClock())
            stack.push_async_callback(opened.close)
        yield opened


@pytest.fixture
async def own(store: MetadataStore) -> AsyncIterator[bytes]:
    """A prefix of the test's own, in a store in which foreign keys change all the time."""

    async def change_foreign_keys() -> None:
        for i in count():
            await store.txn((), (Put(b"foreign/%d" % (i % 7), b"%d" % i),))
            await asyncio.sleep(0.001)

    foreign = asyncio.ensure_future(change_foreign_keys())
    yield b"test/%b/" % uuid4().hex.encode()
    foreign.cancel()
    await asyncio.gather(foreign, return_exceptions=True)
