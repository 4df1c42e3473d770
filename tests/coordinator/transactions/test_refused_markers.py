"""Decided transactions whose markers a partition refuses, because of an epoch that no coordinator gave out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.broker.metadata.store.store import StoreUnreachableError
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.handlers.cluster import SELF, publish
from tests.handlers.requests import NOW, batch, create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.metadata.test_adoption_of_transactions import forget_metadata
from tests.wire import Wire

LAST_COORDINATOR_EPOCH = 2**31 - 1
LAST_EPOCH = 2**15 - 1
CLIENTS = pytest.mark.parametrize("version", [4, 5])
"""The version of EndTxn: of clients of version 1 and 2 of the protocol."""


class Place:
    """A broker, and a producer of transactions in partition 0 of `t`."""

    def __init__(self, broker: Broker, wire: Wire) -> None:
        self.broker = broker
        self.wire = wire
        self.producer = TransactionalProducer(wire)
        self.sequences: dict[int, int] = defaultdict(lambda: -1)  # the last one by epoch

    @property
    def partition(self) -> Partition:
        return self.broker.services.partitions.get("t", 0)

    async def write(self) -> None:
        """Begin a transaction, with a record."""
        while (await self.producer.add_as_broker({"t": [0]}))["t", 0] == ErrorCode.CONCURRENT_TRANSACTIONS:
            pass  # the markers of the last one are being written
        epoch = self.producer.epoch
        self.sequences[epoch] += 1
        data = batch(
            b"v",
            producer_id=self.producer.producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequences[epoch],
            is_transactional=True,
        )
        assert isinstance(self.partition.append_as_leader(memoryview(bytearray(data)), 1, NOW), AppendInfo)

    async def write_foreign_marker(self, coordinator_epoch: int, epoch: int | None = None) -> None:
        """Write a marker as any client may."""
        producer_epoch = self.producer.epoch if epoch is None else epoch
        topics = [WritableTxnMarkerTopic("t", [0])]
        marker = WritableTxnMarker(self.producer.producer_id, producer_epoch, True, topics, coordinator_epoch, 0)
        [answered] = (await self.wire.ask(WriteTxnMarkersRequest([marker]), 2)).markers
        assert answered.topics[0].partitions[0].error_code == ErrorCode.NONE

    async def end(self, version: int) -> None:
        """Commit, and return when the transaction has ended; nothing of it is held back then."""
        assert await self.producer.end(commit=True, version=version) is ErrorCode.NONE
        await self.ended()

    async def ended(self) -> None:
        markers = self.broker.services.transactions.markers
        remaining = markers.remaining("t")
        while (state := (await self.producer.describe()).transaction_state) != "CompleteCommit":
            assert state == "PrepareCommit"
            assert remaining, "nothing sends the markers"
            remaining = markers.remaining("t")
        log = self.partition.log
        assert log.last_stable_offset == log.log_end_offset


def properties(path: Path) -> dict[str, str]:
    return {"log.dirs": str(path / "log"), "transaction.state.log.num.partitions": "1", "log.retention.ms": "-1"}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        made = Place(broker, wire)
        await made.producer.start()
        yield made


@CLIENTS
@pytest.mark.parametrize("coordinator_epoch", [57, LAST_COORDINATOR_EPOCH - 1, LAST_COORDINATOR_EPOCH])
async def test_a_foreign_coordinator_epoch_keeps_no_transaction_open(
    place: Place, version: int, coordinator_epoch: int
) -> None:
    await place.write_foreign_marker(coordinator_epoch)
    for _ in range(2):
        await place.write()
        await place.end(version)


@CLIENTS
async def test_a_foreign_producer_epoch_keeps_no_transaction_open(place: Place, version: int) -> None:
    await place.write()
    await place.write_foreign_marker(0, LAST_EPOCH)

    await place.end(version)


@CLIENTS
async def test_a_coordinator_epoch_of_another_cluster_keeps_no_transaction_open(tmp_path: Path, version: int) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        before = Place(broker, wire)
        await before.producer.start()
        await before.write_foreign_marker(57)
        await before.write()
    forget_metadata(tmp_path / "log")

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        place = Place(broker, wire)
        place.producer.producer_id, place.producer.epoch = before.producer.producer_id, before.producer.epoch
        await place.producer.find_coordinator()
        assert broker.services.metadata.image.topics[TRANSACTION_STATE].partitions[0].leader_epoch < 57
        assert place.partition.log.last_stable_offset < place.partition.log.log_end_offset

        await place.end(version)


async def test_a_coordinator_that_the_store_does_not_confirm_ends_its_sending(place: Place) -> None:
    """The image has a later epoch than the store, as the store has a later one than a coordinator that was replaced."""
    publish(place.broker, TRANSACTION_STATE, leader=SELF)
    while (await place.producer.describe()).error_code:
        pass  # loading
    await place.write_foreign_marker(57)
    await place.write()
    end = place.partition.log.log_end_offset

    assert await place.producer.end(commit=True) is ErrorCode.NONE
    markers = place.broker.services.transactions.markers
    while markers.remaining("t"):
        await place.producer.describe()

    assert (await place.producer.describe()).transaction_state == "PrepareCommit"
    assert place.partition.log.log_end_offset == end


async def test_a_coordinator_that_cannot_ask_the_store_asks_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.write_foreign_marker(57)
    await place.write()
    store = place.broker.services.metadata.store
    read, failures = store.range, [StoreUnreachableError("away")] * 2

    async def fail_first(*arguments: Any, **more: Any) -> Any:
        if failures:
            raise failures.pop()
        return await read(*arguments, **more)

    monkeypatch.setattr(store, "range", fail_first)

    await place.end(5)

    assert not failures
