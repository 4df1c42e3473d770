"""Transactions of a producer over a scripted network, with both versions of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    CommitUnknownError,
    ConfigurationError,
    Producer,
    ProducerFencedError,
    RecordMetadata,
    TransactionAbortedError,
)
from odradek.client.record import CommittedOffset, GroupMetadata, TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.client.scripted_broker import Broker
from tests.client.scripted_coordinator import TransactionCoordinator, offsets_answer
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, now, refuse
from tests.client.virtual_time import simulated

BOTH = pytest.mark.parametrize("version", [1, 2])


def cluster(version: int) -> tuple[ScriptedNetwork, TransactionCoordinator, Log]:
    network = ScriptedNetwork(transaction_version=version)
    [log] = network.create("t")
    assert network.coordinator is not None
    return network, network.coordinator, log


def producer_of(network: ScriptedNetwork, **settings: Any) -> Producer:
    return Producer(network.bootstrap, network=network, transactional_id="id", linger_ms=0, **settings)


def refuse_end(code: ErrorCode) -> Any:
    async def answer(broker: Broker, request: Any) -> EndTxnResponse:
        return EndTxnResponse(error_code=code)

    return answer


async def silent(broker: Broker, request: Any) -> None:
    """Lose the request, but keep the connection."""


@simulated
async def test_version_1_adds_partitions_and_keeps_epoch_and_sequences() -> None:
    network, coordinator, log = cluster(1)
    broker = network.brokers[1]
    async with producer_of(network) as producer:
        for value in (b"0", b"1"):
            async with producer.transaction():
                await producer.send("t", value)
    assert coordinator.ended == [True, True]
    assert len(broker.received(AddPartitionsToTxnRequest)) == 2
    assert [(header.producer_epoch, header.base_sequence) for header in log.headers()] == [(0, 0), (0, 1)]
    assert all(header.is_transactional for header in log.headers())


@simulated
async def test_version_2_adds_nothing_and_begins_each_transaction_with_a_new_epoch() -> None:
    network, coordinator, log = cluster(2)
    broker = network.brokers[1]
    async with producer_of(network) as producer:
        for value in (b"0", b"1"):
            async with producer.transaction():
                await producer.send("t", value)
    assert coordinator.ended == [True, True]
    assert broker.received(AddPartitionsToTxnRequest) == []
    assert [(header.producer_epoch, header.base_sequence) for header in log.headers()] == [(0, 0), (1, 0)]


@BOTH
@simulated
async def test_a_transaction_without_records_sends_no_request(version: int) -> None:
    network, _, _ = cluster(version)
    async with producer_of(network) as producer:
        async with producer.transaction():
            pass
        transaction = producer.transaction()
        async with transaction:
            await transaction.abort()
    assert network.brokers[1].received(EndTxnRequest) == []


@simulated
async def test_a_producer_accepts_records_only_in_a_transaction_and_one_at_a_time() -> None:
    network, _, log = cluster(2)
    async with producer_of(network) as producer:
        with pytest.raises(ConfigurationError, match="no open transaction"):
            await producer.send("t", b"before")
        async with producer.transaction() as transaction:
            await producer.send("t", b"inside")
            with pytest.raises(ConfigurationError, match="has not ended"):
                async with producer.transaction():
                    pass
            await transaction.commit()
            with pytest.raises(ConfigurationError, match="no open transaction"):
                await producer.send("t", b"after the commit")
        with pytest.raises(ConfigurationError, match="no open transaction"):
            await producer.send("t", b"after")
        with pytest.raises(ConfigurationError, match="ended already"):
            await transaction.abort()
    assert log.values() == [b"inside"]
    async with Producer(network.bootstrap, network=network) as plain:
        with pytest.raises(ConfigurationError, match="no transactional_id"):
            plain.transaction()


@pytest.mark.parametrize("name", ["InitProducerId", "AddPartitionsToTxn", "EndTxn"])
@simulated
async def test_concurrent_transactions_is_tried_again_after_20_ms(name: str) -> None:
    network, coordinator, _ = cluster(1)

    async def concurrent(broker: Broker, request: Any) -> Any:
        code = ErrorCode.CONCURRENT_TRANSACTIONS
        if isinstance(request, AddPartitionsToTxnRequest):
            answer: Any = coordinator.serve(1, request)
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code = code
            return answer
        return (EndTxnResponse if isinstance(request, EndTxnRequest) else InitProducerIdResponse)(error_code=code)

    network.brokers[1].script(name, *[concurrent] * 10)
    began = now()
    async with producer_of(network) as producer, producer.transaction():
        await producer.send("t", b"0")
    assert coordinator.ended == [True]
    assert now() - began == pytest.approx(0.2, abs=0.01)


@BOTH
@simulated
async def test_any_exception_and_a_cancellation_abort(version: int) -> None:
    network, coordinator, _ = cluster(version)
    entered = asyncio.Event()

    async def wait(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send_and_wait("t", b"0")
            entered.set()
            await asyncio.Event().wait()

    async with producer_of(network) as producer:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction():
                await producer.send_and_wait("t", b"0")
                raise ZeroDivisionError
        task = asyncio.create_task(wait(producer))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with producer.transaction():
            await producer.send("t", b"1")
    assert coordinator.ended == [False, False, True]


@BOTH
@simulated
async def test_records_in_flight_are_over_before_an_abort_and_others_are_discarded(version: int) -> None:
    network, coordinator, log = cluster(version)
    gate = Gate()
    sent: list[asyncio.Future[RecordMetadata]] = []
    async with producer_of(network, batch_size=0) as producer:
        network.brokers[1].script("Produce", gate)
        transaction = producer.transaction()
        async with transaction:
            sent += [await producer.send("t", b"in flight"), await producer.send("t", b"waiting")]
            await gate.reached.wait()
            aborting = asyncio.create_task(transaction.abort())
            await asyncio.sleep(1)
            assert network.brokers[1].received(EndTxnRequest) == []
            gate.open()
            await aborting
        with pytest.raises(TransactionAbortedError):
            await sent[1]
        async with producer.transaction():
            await producer.send("t", b"next")
    assert (await sent[0]).offset == 0
    assert log.values() == [b"in flight", b"next"]
    assert coordinator.ended == [False, True]


@BOTH
@simulated
async def test_a_cancelled_commit_aborts_before_it_was_sent_and_goes_on_afterwards(version: int) -> None:
    network, coordinator, log = cluster(version)

    async def send(producer: Producer, value: bytes) -> None:
        async with producer.transaction():
            await producer.send("t", value)

    for name in ("Produce", "EndTxn"):
        gate = Gate()
        async with producer_of(network) as producer:
            network.brokers[1].script(name, gate)
            task = asyncio.create_task(send(producer, b"0"))
            await gate.reached.wait()
            task.cancel()
            asyncio.get_running_loop().call_later(1, gate.open)
            with pytest.raises(asyncio.CancelledError):
                await task
            await send(producer, b"1")
    assert coordinator.ended == [False, True, True, True]
    assert log.values() == [b"0", b"1", b"0", b"1"]


@BOTH
@simulated
async def test_a_record_that_fails_aborts_and_the_transaction_is_repeated(version: int) -> None:
    network, coordinator, log = cluster(version)
    async with producer_of(network) as producer:
        network.brokers[1].script("Produce", refuse(ErrorCode.TRANSACTION_ABORTABLE))
        with pytest.raises(TransactionAbortedError, match="TRANSACTION_ABORTABLE") as caught:
            async with producer.transaction():
                await producer.send("t", b"0")
        assert caught.value.retriable
        network.brokers[1].script("Produce", refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
        with pytest.raises(TransactionAbortedError, match="OUT_OF_ORDER"):
            async with producer.transaction():
                await producer.send_and_wait("t", b"0")
        async with producer.transaction():
            await producer.send("t", b"1")
    assert coordinator.ended == [False, False, True]
    assert log.values() == [b"1"]
    [header] = log.headers()
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 0)
    inits = network.brokers[1].received(InitProducerIdRequest)
    given = [(request.producer_id, request.producer_epoch) for request in inits]
    assert given == ([(-1, -1), (7, 0), (7, 1)] if version == 1 else [(-1, -1)])


@BOTH
@simulated
async def test_after_a_failure_records_are_refused_and_the_others_fail(version: int) -> None:
    network, coordinator, log = cluster(version)
    async with producer_of(network, batch_size=0) as producer:
        network.brokers[1].script("Produce", refuse(ErrorCode.INVALID_RECORD))
        with pytest.raises(TransactionAbortedError, match="INVALID_RECORD"):  # noqa: PT012
            async with producer.transaction():
                sent = [await producer.send("t", b"0"), await producer.send("t", b"1")]
                outcomes = await asyncio.gather(*sent, return_exceptions=True)
                assert isinstance(outcomes[1], TransactionAbortedError)
                await producer.send("t", b"2")
    assert coordinator.ended == [False]
    assert log.values() == []


@BOTH
@simulated
async def test_a_commit_without_response_is_repeated_and_cannot_become_an_abort(version: int) -> None:
    network, coordinator, _ = cluster(version)
    async with producer_of(network, max_block_ms=1000) as producer:
        network.brokers[1].script("EndTxn", silent)
        transaction = producer.transaction()
        with pytest.raises(CommitUnknownError, match=r"await outcome\(\) of the transaction"):
            async with transaction:
                await producer.send("t", b"0")
        with pytest.raises(ConfigurationError, match="may be committed"):
            await transaction.abort()
        with pytest.raises(ConfigurationError, match="has not ended"):
            async with producer.transaction():
                pass
        network.brokers[1].drop_connections()  # the responses after the lost one would not arrive
        await transaction.commit()
        async with producer.transaction():
            await producer.send("t", b"1")
    assert coordinator.ended == [True, True]


@BOTH
@simulated
async def test_a_producer_continues_after_its_transaction_timed_out(version: int) -> None:
    network, coordinator, log = cluster(version)
    async with producer_of(network) as producer:
        refused = "PRODUCER_FENCED" if version == 1 else "INVALID_TXN_STATE"
        with pytest.raises(TransactionAbortedError, match=refused):  # noqa: PT012
            async with producer.transaction():
                await producer.send_and_wait("t", b"too late")
                coordinator.time_out()
        async with producer.transaction():
            await producer.send("t", b"again")
    assert coordinator.ended == [False, True]
    assert [header.producer_epoch for header in log.headers()] == [0, 1]


@BOTH
@simulated
async def test_a_fenced_producer_is_of_no_more_use(version: int) -> None:
    network, coordinator, _ = cluster(version)
    async with producer_of(network) as producer:
        with pytest.raises(ProducerFencedError, match="make a new producer"):  # noqa: PT012
            async with producer.transaction():
                await producer.send_and_wait("t", b"0")
                coordinator.fence()
        with pytest.raises(ProducerFencedError):
            async with producer.transaction():
                pass
    assert coordinator.ended == []


@simulated
async def test_an_unknown_id_and_an_invalid_epoch_never_renumber_a_partition() -> None:
    network, coordinator, _ = cluster(2)
    async with producer_of(network) as producer:
        network.brokers[1].script("Produce", refuse(ErrorCode.INVALID_PRODUCER_EPOCH))
        with pytest.raises(TransactionAbortedError, match="INVALID_PRODUCER_EPOCH"):
            async with producer.transaction():
                await producer.send("t", b"0")
        network.brokers[1].script("EndTxn", refuse_end(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        with pytest.raises(ProducerFencedError, match="INVALID_PRODUCER_ID_MAPPING"):
            async with producer.transaction():
                await producer.send("t", b"0")
    assert coordinator.ended == [False]


# Offsets.

OFFSETS = {TopicPartition("t", 0): CommittedOffset(5)}


class Member:
    """The part of a consumer that a transaction uses."""

    def group_metadata(self) -> GroupMetadata:
        return GroupMetadata("group", 3, "member", None)


@BOTH
@simulated
async def test_offsets_are_committed_with_the_membership_of_the_consumer(version: int) -> None:
    network, coordinator, _ = cluster(version)
    member: Any = Member()
    async with producer_of(network) as producer, producer.transaction() as transaction:
        await transaction.send_offsets(OFFSETS, member)
        await transaction.send_offsets({("t", 0): 6}, member)
    received = network.brokers[1].received(TxnOffsetCommitRequest)
    assert [(one.group_id, one.generation_id, one.member_id) for one in received] == [("group", 3, "member")] * 2
    assert [one.topics[0].partitions[0].committed_offset for one in received] == [5, 6]
    assert len(network.brokers[1].received(AddOffsetsToTxnRequest)) == (1 if version == 1 else 0)
    assert coordinator.ended == [True]


@BOTH
@simulated
async def test_offsets_of_a_former_member_abort(version: int) -> None:
    network, coordinator, _ = cluster(version)
    member: Any = Member()

    async def refuse_offsets(broker: Broker, request: Any) -> Any:
        return offsets_answer(request, ErrorCode.ILLEGAL_GENERATION)

    network.brokers[1].script("TxnOffsetCommit", refuse_offsets)
    async with producer_of(network) as producer:
        with pytest.raises(TransactionAbortedError, match="ILLEGAL_GENERATION"):
            async with producer.transaction() as transaction:
                await transaction.send_offsets(OFFSETS, member)
        async with producer.transaction() as transaction:
            await transaction.send_offsets(OFFSETS, member)
    assert coordinator.ended == [False, True]


@simulated
async def test_a_commit_whose_coordinator_leaves_the_metadata_is_sent_again() -> None:
    """It was executed: to call the transaction aborted would make the program write its records twice."""
    network = ScriptedNetwork(brokers=2, transaction_version=1)
    network.create("t")
    coordinator = network.coordinator
    assert coordinator is not None

    async def execute_and_leave(broker: Broker, request: Any) -> None:
        await broker.serve(request)
        for each in network.brokers.values():
            each.clear_scripts()
        broker.is_up = False  # its connections stay open

    async with producer_of(network, metadata_max_age_ms=500) as producer:
        async with producer.transaction():
            await (await producer.send("t", b"1"))
            for each in network.brokers.values():
                each.script("EndTxn", execute_and_leave)
        assert coordinator.ended == [True, True]
        assert now() < 5
