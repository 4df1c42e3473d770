"""The verification of transactional batches by a coordinator on another broker, that answers late or with errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.transactions.transaction_coordinator import PartitionErrors
from odradek.broker.coordinator.transactions.verification import TransactionVerifier
from odradek.broker.handlers import produce
from odradek.broker.metrics.counts.transactions import TransactionCounts
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.requests import create
from tests.handlers.test_transactional_produce import committed_values
from tests.handlers.transactional_batches import ProducingProducer
from tests.handlers.write_markers import write_marker
from tests.wire import Wire

CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


class OtherCoordinator:
    """The coordinator of transactions on another broker: it answers when a test says so, what the coordinator says.

    `errors` are its first answers instead, NONE for that of the coordinator; `answered` counts its answers.
    """

    def __init__(self, broker: Broker, *errors: ErrorCode) -> None:
        self._coordinator = broker.services.transactions
        self._errors: Iterator[ErrorCode] = iter(errors)
        self.answers = asyncio.Event()
        self.asked = asyncio.Event()
        self.answered = 0

    def coordinator_of(self, transactional_id: str) -> int:
        return self._coordinator.coordinator_of(transactional_id)

    async def add_partitions(self, *args: Any, adds: bool) -> PartitionErrors:
        self.asked.set()
        error = next(self._errors, ErrorCode.NONE)
        added = self._coordinator.add_partitions(*args, adds=adds) if error is ErrorCode.NONE else {}
        errors = added if isinstance(added, Mapping) else await added
        await self.answers.wait()
        self.answers.clear()
        self.answered += 1
        return errors if error is ErrorCode.NONE else dict.fromkeys(args[3], KafkaError(error))


class RetryClock(ManualClock):
    """A clock that a retry advances by 10 ms, however long it takes."""

    def monotonic(self) -> float:
        self.advance(10)
        return super().monotonic()


def start_produce(
    broker: Broker, coordinator: OtherCoordinator, producer: ProducingProducer, version: int, sequence: int = 0
) -> asyncio.Task[ErrorCode]:
    """Start to handle a Produce of one batch to partition 0 of `t`; the task ends with the code of its row."""
    verifier = TransactionVerifier(
        broker.config.node_id, coordinator, None, lambda: broker.config, RetryClock(), TransactionCounts()
    )
    services = replace(broker.services, transaction_verifier=verifier)
    context = RequestContext(0, version, 1, None, 0.0, ConnectionContext("PLAINTEXT", ("::1", 1), ("::1", 2)))
    records = memoryview(bytearray(producer.batch(b"v%d" % sequence, sequence=sequence)))
    topic_data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])]
    answer = produce.handle(services, context, ProduceRequest(producer.transactional_id, -1, 30_000, topic_data))

    async def code() -> ErrorCode:
        response = await answer if asyncio.iscoroutine(answer) or isinstance(answer, asyncio.Future) else answer
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    return asyncio.create_task(code())


async def started(wire: Wire, version: int) -> ProducingProducer:
    """A producer of topic `t`, to which a client of version 1 has added the partition."""
    await create(wire, "t")
    producer = ProducingProducer(wire, is_new=version >= 12)
    await producer.start()
    if version < 12:
        await producer.add_partition("t", 0)
    return producer


@pytest.mark.parametrize("version", [9, 12])
async def test_a_batch_is_appended_when_another_broker_has_verified_it(
    broker: Broker, wire: Wire, version: int
) -> None:
    producer = await started(wire, version)
    coordinator = OtherCoordinator(broker)
    producing = start_produce(broker, coordinator, producer, version)
    await coordinator.asked.wait()
    assert broker.services.partitions.get("t", 0).log.log_end_offset == 0

    coordinator.answers.set()

    assert await producing is ErrorCode.NONE
    assert await start_produce(broker, coordinator, producer, version, 1) is ErrorCode.NONE, "it is open"
    assert coordinator.answered == 1
    await producer.finish(commit=True)
    assert await committed_values(wire, "t") == [b"v0", b"v1", None]


@pytest.mark.parametrize(
    ("version", "code"), [(9, ErrorCode.INVALID_TXN_STATE), (12, ErrorCode.INVALID_PRODUCER_EPOCH)]
)
async def test_a_batch_is_refused_if_its_transaction_ends_while_another_broker_verifies_it(
    broker: Broker, wire: Wire, version: int, code: ErrorCode
) -> None:
    producer = await started(wire, version)
    coordinator = OtherCoordinator(broker)
    producing = start_produce(broker, coordinator, producer, version)
    await coordinator.asked.wait()
    await producer.finish(commit=False)

    coordinator.answers.set()

    assert await producing is code
    assert await committed_values(wire, "t") == [None]


@pytest.mark.parametrize(
    ("version", "error", "code"),
    [
        *[
            (version, error, ErrorCode.NOT_ENOUGH_REPLICAS)
            for version in (9, 12)
            for error in (
                ErrorCode.NETWORK_EXCEPTION,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.NOT_COORDINATOR,
            )
        ],
        (9, CONCURRENT, ErrorCode.NOT_ENOUGH_REPLICAS),
        (11, CONCURRENT, ErrorCode.NOT_ENOUGH_REPLICAS),
        (10, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (12, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (9, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (12, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (12, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (12, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
    ],
)
async def test_errors_of_the_verification_by_another_broker(
    broker: Broker, wire: Wire, version: int, error: ErrorCode, code: ErrorCode
) -> None:
    producer = await started(wire, version)
    coordinator = OtherCoordinator(broker, error)
    coordinator.answers.set()

    assert await start_produce(broker, coordinator, producer, version) is code
    assert coordinator.answered == 1


async def test_the_first_batch_of_the_next_transaction_waits_for_the_marker_of_the_last(
    broker: Broker, wire: Wire
) -> None:
    """The marker ends the verification that had begun; the next try begins another."""
    producer = await started(wire, 12)
    coordinator = OtherCoordinator(broker, CONCURRENT, CONCURRENT)
    producing = start_produce(broker, coordinator, producer, 12)
    await coordinator.asked.wait()
    await write_marker(wire, "t", producer.producer_id, producer.epoch, version=2)

    while not producing.done():
        coordinator.answers.set()
        await asyncio.sleep(0)

    assert await producing is ErrorCode.NONE
    assert coordinator.answered == 3
    await producer.finish(commit=True)
    assert await committed_values(wire, "t") == [None, b"v0", None]


async def test_a_producer_whose_last_transaction_does_not_end_is_answered_after_the_time_for_retries(
    broker: Broker, wire: Wire
) -> None:
    producer = await started(wire, 12)
    coordinator = OtherCoordinator(broker, *[CONCURRENT] * 1000)
    producing = start_produce(broker, coordinator, producer, 12)

    while not producing.done():
        coordinator.answers.set()
        await asyncio.sleep(0)

    assert await producing is CONCURRENT
    assert 1 < coordinator.answered < 1000


async def test_no_batch_overtakes_one_that_could_not_be_verified(broker: Broker, wire: Wire) -> None:
    producer = await started(wire, 9)
    coordinator = OtherCoordinator(broker, ErrorCode.NETWORK_EXCEPTION)
    for sequence, code in [
        (0, ErrorCode.NOT_ENOUGH_REPLICAS),
        (1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, ErrorCode.NONE),
        (1, ErrorCode.NONE),
    ]:
        coordinator.answers.set()
        assert await start_produce(broker, coordinator, producer, 9, sequence) is code
