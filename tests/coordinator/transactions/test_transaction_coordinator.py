"""The coordinator of transactions in a broker: while its partition moves and is loaded, and after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.handlers.busy_threads import busy_disk_threads
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import NOW, create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

Start = Callable[[], AbstractAsyncContextManager[tuple[Broker, Wire]]]
LOADING, MOVED = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def start(tmp_path: Path, clock: ManualClock) -> Start:
    """Start a broker on the same log directory, with a connection to it and transactions in one partition."""

    @asynccontextmanager
    async def started() -> AsyncIterator[tuple[Broker, Wire]]:
        properties = {"log.dirs": str(tmp_path / "log"), "transaction.state.log.num.partitions": "1"}
        async with Broker(properties, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
            yield broker, wire

    return started


async def open_transaction(wire: Wire, timeout_ms: int = 60_000) -> TransactionalProducer:
    """A producer with a transaction in partition 0 of `t`."""
    await create(wire, "t")
    producer = TransactionalProducer(wire)
    await producer.start(timeout_ms)
    assert await producer.add_as_broker({"t": [0]}) == {("t", 0): ErrorCode.NONE}
    return producer


async def listed(wire: Wire) -> ListTransactionsResponse:
    response = await wire.ask(ListTransactionsRequest(), 2)
    assert isinstance(response, ListTransactionsResponse)
    return response


async def answers(producer: TransactionalProducer) -> list[ErrorCode]:
    """The error of every request about a transactional id. None of them changes one that is open."""
    added, added_by_broker = await producer.add({"t": [0]}), await producer.add_as_broker({"t": [0]})
    return [
        await producer.initialize(producer_id=producer.producer_id + 1, producer_epoch=producer.epoch),
        added["t", 0],
        added_by_broker["t", 0],
        await producer.add_offsets("g"),
        await producer.end(commit=True, version=4),
        await producer.end(commit=True, version=5),
        ErrorCode((await producer.describe()).error_code),
    ]


async def test_before_the_topic_exists_no_broker_coordinates(start: Start) -> None:
    async with start() as (_, wire):
        await create(wire, "t")
        producer = TransactionalProducer(wire)
        producer.producer_id, producer.epoch = 5, 0

        assert await answers(producer) == [MOVED] * 7
        assert (await listed(wire)).transaction_states == []


async def test_an_id_that_moves_is_answered_so_and_while_it_is_loaded(start: Start) -> None:
    async with start() as (broker, wire):
        producer = await open_transaction(wire)
        publish(broker, TRANSACTION_STATE, leader=OTHER)
        assert await answers(producer) == [MOVED] * 7
        assert (await listed(wire)).transaction_states == []

        async with busy_disk_threads(broker):
            publish(broker, TRANSACTION_STATE, leader=SELF)
            while (await producer.describe()).error_code == MOVED:
                pass  # the partition has not got the image with its new leader yet
            assert await answers(producer) == [LOADING] * 7
            assert (await listed(wire)).error_code == LOADING
        while (described := await producer.describe()).error_code == LOADING:
            pass

        assert described.transaction_state == "Ongoing"
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert [row.transactional_id for row in (await listed(wire)).transaction_states] == ["t"]


async def test_a_time_out_counts_from_the_start_of_the_transaction_over_a_restart(
    start: Start, clock: ManualClock
) -> None:
    async with start() as (broker, wire):
        producer = await open_transaction(wire, timeout_ms=1000)
        clock.advance(900)
    async with start() as (broker, wire):
        producer.wire = wire
        await producer.find_coordinator()
        clock.advance(100)
        await broker.services.transactions.abort_timed_out()
        assert (await producer.describe()).transaction_state == "Ongoing"

        clock.advance(1)
        await broker.services.transactions.abort_timed_out()

        while (described := await producer.describe()).transaction_state == "PrepareAbort":
            pass
        assert (described.transaction_state, described.producer_epoch) == ("CompleteAbort", 1)
        assert await producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
