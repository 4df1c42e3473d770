"""Errors of the store that an operator must correct: no broker stops because of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Cmp, Op, StoreAccessError, StoreError, StoreFullError, TxnResult
from odradek.broker.metadata.topics import create_topic
from tests.metadata.conftest import Start, until


class _RefusingStore(InMemoryStore):
    """Refuses every transaction while `error` is set; `refused` is set by the first."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self.refused = asyncio.Event()

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
