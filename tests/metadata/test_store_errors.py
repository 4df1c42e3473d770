"""Errors of the store that an operator must correct: no broker stops because of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import (
    KV,
    Cmp,
    Op,
    Put,
    StoreAccessError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
    TxnResult,
)
from odradek.broker.metadata.topics import create_topic
from tests.metadata.conftest import Start, until


class _RefusingStore(InMemoryStore):
    """Refuses every transaction while `error` is set; `refused` is set by the first. `unreachable`: failing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self.refused = asyncio.Event()
        self.unreachable = 0

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        if self.unreachable:
            self.unreachable -= 1
            raise StoreUnreachableError("no server answered")
        return await super().range(prefix)

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        if self.error is not None:
            self.refused.set()
            raise self.error
        return await super().txn(when, then)


@pytest.fixture
async def store() -> AsyncIterator[_RefusingStore]:
    store = _RefusingStore()
    yield store
    await store.close()


@pytest.mark.parametrize("error", [StoreFullError("NOSPACE"), StoreAccessError("permission denied")])
async def test_a_controller_elects_when_the_store_accepts_its_transactions_again(
    store: _RefusingStore, start: Start, error: StoreError
) -> None:
    failures: list[BaseException] = []
    first, second = await start(store, 1, failures=failures), await start(store, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", assignments={0: [2, 1]})
    await second.stop(clean=False)
    [_, session] = store.sessions

    store.error = error
    session.abandon()
    await asyncio.wait_for(store.refused.wait(), 30)
    store.error = None

    image = await until(first, lambda image: image.topics["t"].partitions[0].leader == 1)
    assert list(image.topics["t"].partitions[0].isr) == [1]
    assert failures == []


async def test_metadata_are_read_again_when_the_store_can_be_reached(store: _RefusingStore, start: Start) -> None:
    """The store has dropped changes that the watch needs, and cannot be reached at that moment."""
    failures: list[BaseException] = []
    metadata = await start(store, failures=failures)
    for number in range(20_000):  # more revisions than it keeps, without a turn of the loop for the watch in between
        store._apply(store._plan((Put(metadata.keys.topic_config("x"), b'{"n":"%d"}' % number),)))
    store.unreachable = 2

    image = await until(metadata, lambda image: "x" in image.topic_configs)

    assert image.topic_configs["x"][0] == {"n": "19999"}
    assert store.unreachable == 0
    assert failures == []
