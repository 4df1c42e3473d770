"""A commit over a scripted network says committed, aborted or unknown, and unknown can be resolved."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    ClosedError,
    CommitUnknownError,
    ConfigurationError,
    Producer,
    ProducerFencedError,
    TimeLimitError,
    Transaction,
    TransactionAbortedError,
    TransactionOutcome,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnResponse
from tests.client.scripted_broker import DROP, Broker
from tests.client.scripts import Gate, drop_unread, serve_and_drop
from tests.client.transactions.test_transactions import BOTH, cluster, producer_of, refuse_end, silent
from tests.client.virtual_time import simulated

COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED


async def commit_one(producer: Producer, value: bytes = b"0") -> Transaction:
    async with producer.transaction() as transaction:
        await producer.send("t", value)
    return transaction


async def fail_to_commit(producer: Producer, error: type[Exception], match: str | None = None) -> Transaction:
    transaction = producer.transaction()
    with pytest.raises(error, match=match):
        async with transaction:
            await producer.send("t", b"0")
    return transaction


@BOTH
@simulated
async def test_a_commit_whose_response_was_lost_is_committed(version: int) -> None:
    network, coordinator, _ = cluster(version)
    async with producer_of(network) as producer:
        network.brokers[1].script("EndTxn", serve_and_drop)
        assert await (await commit_one(producer)).outcome() is COMMITTED
    assert set(coordinator.ended) == {True}


@BOTH
@pytest.mark.parametrize("is_executed", [False, True])
@simulated
async def test_outcome_resolves_a_commit_in_doubt(version: int, is_executed: bool) -> None:
    network, coordinator, log = cluster(version)

    async def lose_response(broker: Broker, request: Any) -> None:
        if is_executed:
            await broker.serve(request)

    async with producer_of(network, max_block_ms=1000) as producer:
        network.brokers[1].script("EndTxn", lose_response)
        transaction = await fail_to_commit(producer, CommitUnknownError, r"not done within 1000 ms.*await outcome\(\)")
        with pytest.raises(ConfigurationError, match=r"Await outcome\(\)"):
            async with producer.transaction():
                pass
        network.brokers[1].drop_connections()
        assert await transaction.outcome() is COMMITTED
        assert await transaction.outcome() is COMMITTED
        await commit_one(producer, b"1")
        assert await transaction.outcome() is COMMITTED
    assert set(coordinator.ended) == {True}
    assert log.values() == [b"0", b"1"]


@BOTH
@simulated
async def test_a_commit_is_in_doubt_for_ever_if_another_producer_came_after_a_lost_response(version: int) -> None:
    network, coordinator, _ = cluster(version)

    async def execute_and_fence(broker: Broker, request: Any) -> object:
        await broker.serve(request)
        coordinator.fence()
        return DROP

    async with producer_of(network) as producer:
        network.brokers[1].script("EndTxn", execute_and_fence)
        transaction = await fail_to_commit(producer, CommitUnknownError, "PRODUCER_FENCED.*can no longer find out")
        for call in (transaction.outcome, transaction.commit):
            with pytest.raises(CommitUnknownError, match="can no longer find out") as caught:
                await call()
            assert isinstance(caught.value.__cause__, ProducerFencedError)
        with pytest.raises(ProducerFencedError):
            async with producer.transaction():
                pass
    assert coordinator.ended == [True]


@BOTH
@simulated
async def test_a_commit_of_a_fenced_producer_is_aborted(version: int) -> None:
    network, coordinator, _ = cluster(version)
    async with producer_of(network) as producer:
        transaction = producer.transaction()
        with pytest.raises(ProducerFencedError):  # noqa: PT012
            async with transaction:
                await producer.send_and_wait("t", b"0")
                coordinator.fence()
        assert await transaction.outcome() is ABORTED


@BOTH
@simulated
async def test_a_commit_that_was_lost_before_a_timeout_of_the_coordinator_is_aborted(version: int) -> None:
    network, coordinator, _ = cluster(version)

    async def time_out_and_drop(broker: Broker, request: Any) -> object:
        coordinator.time_out()
        return DROP

    async with producer_of(network) as producer:
        network.brokers[1].script("EndTxn", time_out_and_drop)
        assert await (await fail_to_commit(producer, TransactionAbortedError)).outcome() is ABORTED
        assert await (await commit_one(producer)).outcome() is COMMITTED
    assert coordinator.ended == [False, True]


@simulated
async def test_a_new_epoch_that_is_late_leaves_the_commit_in_doubt_until_it_arrives() -> None:
    network, coordinator, _ = cluster(1)

    async def time_out_and_drop(broker: Broker, request: Any) -> object:
        coordinator.time_out()
        return DROP

    async with producer_of(network, max_block_ms=1000) as producer:
        network.brokers[1].script("EndTxn", time_out_and_drop)
        network.brokers[1].script("InitProducerId", silent)
        transaction = await fail_to_commit(producer, CommitUnknownError, r"await outcome\(\)")
        network.brokers[1].drop_connections()
        with pytest.raises(TransactionAbortedError):
            await transaction.commit()
        assert await transaction.outcome() is ABORTED
        await commit_one(producer)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@simulated
async def test_an_error_that_may_come_after_the_commit_does_not_abort(code: ErrorCode) -> None:
    network, coordinator, _ = cluster(2)

    async def execute_and_fail(broker: Broker, request: Any) -> EndTxnResponse:
        await broker.serve(request)
        return EndTxnResponse(error_code=code)

    async with producer_of(network) as producer:
        network.brokers[1].script("EndTxn", execute_and_fail)
        if code.retriable:
            transaction = await commit_one(producer)
        else:
            transaction = await fail_to_commit(producer, CommitUnknownError, code.name)
        assert await transaction.outcome() is COMMITTED
    assert coordinator.ended == [True]


@BOTH
@simulated
async def test_rights_that_are_missing_after_a_lost_response_leave_the_commit_in_doubt(version: int) -> None:
    network, coordinator, _ = cluster(version)
    async with producer_of(network) as producer:
        network.brokers[1].script("EndTxn", serve_and_drop, refuse_end(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        transaction = await fail_to_commit(producer, CommitUnknownError, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
        assert await transaction.outcome() is COMMITTED
    assert set(coordinator.ended) == {True}


@BOTH
@simulated
async def test_a_commit_that_no_coordinator_has_received_is_aborted(version: int) -> None:
    network, coordinator, _ = cluster(version)
    broker = network.brokers[1]
    async with producer_of(network, max_block_ms=1000) as producer:
        broker.script("EndTxn", *[refuse_end(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 100)
        transaction = await fail_to_commit(producer, TransactionAbortedError, "COORDINATOR_LOAD_IN_PROGRESS")
        assert await transaction.outcome() is ABORTED
        broker.clear_scripts()
        await commit_one(producer)
    assert coordinator.ended == [False, True]


@BOTH
@simulated
async def test_an_abort_without_a_response_is_aborted(version: int) -> None:
    network, coordinator, _ = cluster(version)
    async with producer_of(network, max_block_ms=1000) as producer:
        network.brokers[1].script("EndTxn", silent)
        async with producer.transaction() as transaction:
            await producer.send_and_wait("t", b"0")
            with pytest.raises(TimeLimitError, match="It will be aborted"):
                await transaction.abort()
        assert await transaction.outcome() is ABORTED
        network.brokers[1].drop_connections()
        await commit_one(producer)
    assert coordinator.ended == [False, True]


@simulated
async def test_version_1_has_a_new_epoch_after_a_lost_response_so_that_a_late_request_is_fenced() -> None:
    network, _, log = cluster(1)
    async with producer_of(network) as producer:
        await commit_one(producer, b"0")
        for name in ("EndTxn", "AddPartitionsToTxn"):
            network.brokers[1].script(name, drop_unread)
            await commit_one(producer, b"lost")
            await commit_one(producer, b"next")
    assert log.values() == [b"0", b"lost", b"next", b"lost", b"next"]
    assert [header.producer_epoch for header in log.headers()] == [0, 0, 1, 1, 2]


@simulated
async def test_an_open_transaction_has_no_outcome() -> None:
    network, _, _ = cluster(2)
    async with producer_of(network) as producer:
        transaction = producer.transaction()
        with pytest.raises(ConfigurationError, match="it was not begun"):
            await transaction.outcome()
        async with transaction:
            with pytest.raises(ConfigurationError, match=r"it is open. Await commit\(\) or abort\(\) first"):
                await transaction.outcome()
        assert await transaction.outcome() is COMMITTED


@BOTH
@simulated
async def test_the_outcome_of_a_cancelled_commit_waits_for_its_end(version: int) -> None:
    network, coordinator, _ = cluster(version)
    for name, expected in (("Produce", ABORTED), ("EndTxn", COMMITTED)):
        gate = Gate()
        async with producer_of(network) as producer:
            network.brokers[1].script(name, gate)
            async with producer.transaction() as transaction:
                await producer.send("t", b"0")
                committing = asyncio.create_task(transaction.commit())
                await gate.reached.wait()
                committing.cancel()
                asyncio.get_running_loop().call_later(1, gate.open)
                with pytest.raises(asyncio.CancelledError):
                    await committing
                assert await transaction.outcome() is expected
    assert coordinator.ended == [False, True]


@BOTH
@simulated
async def test_a_closed_producer_leaves_its_commit_in_doubt(version: int) -> None:
    network, _, _ = cluster(version)
    producer = producer_of(network)
    await producer.start()
    gate = Gate()
    network.brokers[1].script("EndTxn", gate)
    committing = asyncio.create_task(commit_one(producer))
    await gate.reached.wait()
    await producer.close(100)
    with pytest.raises(CommitUnknownError, match=r"closed.*can no longer find out") as caught:
        await committing
    assert isinstance(caught.value.__cause__, ClosedError)
