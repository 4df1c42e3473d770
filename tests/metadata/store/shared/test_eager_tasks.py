"""A server whose loop has an eager task factory: watches and sessions may end in the moment in which they begin."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from odradek.broker.metadata.store.history import KEPT
from odradek.broker.metadata.store.memory import InMemorySession, InMemoryStore
from odradek.broker.metadata.store.shared.messages import Failed, Open, Opened, SessionLost, Watch
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.store import CompactedError, Put
from tests.eager_tasks import eager_task
from tests.metadata.store.shared.conftest import RawWorker


@pytest.fixture(autouse=True)
async def eager_tasks() -> None:
    """Set the factory; before Python 3.12, which has the first eager tasks, the tests run with the others."""
    if sys.version_info >= (3, 12):
        asyncio.get_running_loop().set_task_factory(eager_task)


class RevokesAtOnce(InMemoryStore):
    async def session(self, ttl: float) -> InMemorySession:
        session = await super().session(ttl)
        await session.revoke()
        return session


async def test_a_worker_learns_that_its_session_was_lost_at_once(path: Path) -> None:
    store = RevokesAtOnce()
    server = StoreServer(store, path)
    await server.start()

    async with asyncio.timeout(10), RawWorker(path) as worker:
        worker.send(Open(1, 60))

        assert await worker.answer() == Opened(1, 1)
        assert await worker.answer() == SessionLost(1)

    await server.close()
    await store.close()


async def test_a_watch_that_fails_at_once_leaves_nothing_behind(
    owned: InMemoryStore, server: StoreServer, path: Path
) -> None:
    for _ in range(2 * KEPT):
        owned.commit_now(Put(b"a", b""))

    async with asyncio.timeout(10), RawWorker(path) as worker:
        for _ in range(2):
            worker.send(Watch(1, b"", 0))

            answer = await worker.answer()

            assert isinstance(answer, Failed)
            assert isinstance(answer.error(), CompactedError)
