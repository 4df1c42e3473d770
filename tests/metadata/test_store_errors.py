"""Errors of the store that an operator must correct: no broker stops because of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.cluster_record import begin_cluster
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.memory import InMemorySession, InMemoryStore
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
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.metadata.values import ClusterRecord
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import CLUSTER_ID, Start, until


class _RefusingStore(InMemoryStore):
    """Refuses every transaction while `error` is set; `refused` is set by the first. `unreachable`: failing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self.refused = asyncio.Event()
        self.unreachable = self.calls = 0
        self.hiccups = 0  # 5: every fifth call fails

    def _reach(self) -> None:
        self.calls += 1
        if self.unreachable or (self.hiccups and self.calls % self.hiccups == 0):
            self.unreachable = max(0, self.unreachable - 1)
            raise StoreUnreachableError("no server answered")

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        self._reach()
        return await super().range(prefix)

    async def session(self, ttl: float) -> InMemorySession:
        self._reach()
        return await super().session(ttl)

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
        store.commit_now(Put(metadata.keys.topic_config("x"), b'{"n":"%d"}' % number))
    store.unreachable = 2

    image = await until(metadata, lambda image: "x" in image.topic_configs)

    assert image.topic_configs["x"][0] == {"n": "19999"}
    assert store.unreachable == 0
    assert failures == []


async def test_a_broker_starts_although_the_store_does_not_answer_now_and_then(
    store: _RefusingStore, start: Start
) -> None:
    """An attempt has half a second, and machines start everything at once."""
    await begin_cluster(store, Keys(), ClusterRecord(CLUSTER_ID, 0), adopts=False)
    for already in range(5):
        store.calls, store.hiccups = already, 5

        metadata = await asyncio.wait_for(start(store, is_shared=True), 60)

        assert metadata.image.brokers[1].epoch == metadata.broker_epoch
        assert len([session for session in store.sessions if not session.lost.is_set()]) == 1
        store.hiccups = 0
        await metadata.stop()


async def test_a_read_waits_for_the_store_until_the_time_limit(store: _RefusingStore, start: Start) -> None:
    metadata = await start(store)
    store.unreachable = 2
    assert await asyncio.wait_for(metadata.read(metadata.keys.cluster), 30) is not None

    store.unreachable = 1_000_000
    with time_limit(500), pytest.raises(KafkaError) as caught:
        await metadata.read(metadata.keys.cluster)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_a_session_that_is_lost_before_a_broker_serves_is_replaced(store: _RefusingStore, start: Start) -> None:
    """A machine that stalls while a broker starts."""
    txn = store.txn

    async def lose_the_session(when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        if any(isinstance(op, Put) and op.key == Keys().broker_known(1) for op in then):
            store.txn = txn  # type: ignore[method-assign]
            await store.sessions[-1].revoke()
        return await txn(when, then)

    store.txn = lose_the_session  # type: ignore[method-assign]

    metadata = await asyncio.wait_for(start(store), 30)

    assert metadata.image.brokers[1].epoch == metadata.broker_epoch
    assert len(store.sessions) == 2
