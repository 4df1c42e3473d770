"""A cluster of one broker in a store in memory, which has stopped: its directories and its store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV
from odradek.broker.testing.clock import ManualClock
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire

CLOCK = ManualClock()


class Stopped:
    """A stopped broker: its properties, and the store that it used."""

    def __init__(self, log_dir: Path, store: InMemoryStore) -> None:
        self.properties = {"node.id": "1", "log.dirs": str(log_dir)}
        self.log_dir = log_dir
        self.store = store

    @property
    def config(self) -> BrokerConfig:
        return BrokerConfig.load(None, self.properties)

    def broker(self) -> AbstractAsyncContextManager[Broker]:
        return Broker(self.properties, store=self.store)

    def logs(self) -> list[str]:
        return sorted(each.name for each in self.log_dir.iterdir() if each.is_dir())

    def stray_or_not(self) -> list[str]:
        """The partitions that have a directory, whatever it was renamed to."""
        return sorted({name.partition(".")[0] for name in self.logs()})

    async def dump(self) -> list[KV]:
        return (await self.store.range(b""))[0]


async def run_with(stopped: Stopped, *topics: str) -> None:
    """Run the broker, create topics with a record each, and stop it."""
    async with stopped.broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        for topic in topics:
            await create(wire, topic)
            await produce(wire, topic, batch(topic.encode()))


async def restored(kvs: list[KV], revision: int) -> InMemoryStore:
    """A store as it was at a revision, with the keys of then."""
    store = InMemoryStore()
    store.restore((kv for kv in kvs if not kv.lease), revision)
    return store


@pytest.fixture
async def stopped(tmp_path: Path) -> AsyncIterator[Stopped]:
    stopped = Stopped(tmp_path / "log", InMemoryStore())
    yield stopped
    await stopped.store.close()
