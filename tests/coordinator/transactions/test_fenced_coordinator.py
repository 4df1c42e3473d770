"""A coordinator that is fenced for a while and stays the coordinator: its decided transactions end afterwards."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.broker.replication.fencing import STRICT, Fencing
from odradek.protocol.errors import ErrorCode
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

NO_LEADER = -1


class Coordinator:
    """The coordinator of the id `t`, with a transaction in partition 0 of `t`; a test fences it, and ends that."""

    def __init__(self, broker: Broker, producer: TransactionalProducer) -> None:
        self.broker = broker
        self.producer = producer
        self.is_fenced = False

    def deadline(self) -> float:
        return -math.inf if self.is_fenced else math.inf

    async def decide_without_leader(self) -> None:
        """Commit the transaction while its partition has no leader, so that its marker cannot be written yet."""
        publish(self.broker, "t", leader=NO_LEADER)
        assert await self.producer.end(commit=True) is ErrorCode.NONE
        assert (await self.producer.describe()).transaction_state == "PrepareCommit"

    async def state(self) -> str:
        """Return the state once the coordinator serves."""
        while (described := await self.producer.describe()).error_code:
            assert described.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return described.transaction_state

    async def completed(self) -> None:
        """Return when the transaction has ended; until then its markers must be on their way."""
        markers = self.broker.services.transactions.markers
        remaining = markers.remaining("t")
        while (state := await self.state()) != "CompleteCommit":
            assert state == "PrepareCommit"
            assert remaining, "nothing sends the markers"
            remaining = markers.remaining("t")


@pytest.fixture
async def coordinator(tmp_path: Path) -> AsyncIterator[Coordinator]:
    properties = {"log.dirs": str(tmp_path / "log"), "transaction.state.log.num.partitions": "1"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        made = Coordinator(broker, TransactionalProducer(wire))
        broker.services.partitions.fencing = Fencing(
            SystemClock(), made.deadline, mode=STRICT, replica_fetch_wait_max_ms=500
        )
        await create(wire, "t")
        await made.producer.start()
        assert await made.producer.add_as_broker({"t": [0]}) == {("t", 0): ErrorCode.NONE}
        yield made


async def test_markers_are_sent_after_a_fence_that_came_while_they_waited(coordinator: Coordinator) -> None:
    markers = coordinator.broker.services.transactions.markers
    await coordinator.decide_without_leader()

    coordinator.is_fenced = True
    publish(coordinator.broker, "t", leader=SELF)
    while markers.unknown_destinations:  # the next attempt comes while the coordinator is fenced
        await coordinator.producer.describe()
    assert markers.remaining("t") == {("t", 0)}
    coordinator.is_fenced = False

    await coordinator.completed()


async def test_markers_are_sent_if_the_coordinator_was_fenced_when_it_was_loaded(coordinator: Coordinator) -> None:
    await coordinator.decide_without_leader()
    publish(coordinator.broker, TRANSACTION_STATE, leader=OTHER)
    publish(coordinator.broker, "t", leader=SELF)

    coordinator.is_fenced = True
    publish(coordinator.broker, TRANSACTION_STATE, leader=SELF)
    transactions = coordinator.broker.services.transactions
    while transactions.is_loading or not list(transactions.shards()):
        await coordinator.producer.describe()
    coordinator.is_fenced = False

    await coordinator.completed()


async def test_markers_are_not_sent_by_a_coordinator_that_has_moved(coordinator: Coordinator) -> None:
    markers = coordinator.broker.services.transactions.markers
    await coordinator.decide_without_leader()

    publish(coordinator.broker, TRANSACTION_STATE, leader=OTHER)
    publish(coordinator.broker, "t", leader=SELF)
    while markers.remaining("t"):
        await coordinator.producer.describe()

    partition = coordinator.broker.services.partitions.get("t", 0)
    assert partition.log.log_end_offset == 0
