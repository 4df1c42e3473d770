from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import ProducerState
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.handlers.cluster import OTHER, publish
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import NOW, batch, create
from tests.handlers.test_describe_producers import describe
from tests.wire import Wire

PRODUCER = 77


def open_transaction(broker: Broker, topic: str, epoch: int = 3, index: int = 0, sequence: int = 0) -> Partition:
    """Append a transactional batch as if its transaction had been verified."""
    partition = broker.services.partitions.get(topic, index)
    data = batch(b"v", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)
    assert isinstance(partition.append_as_leader(memoryview(bytearray(data)), 1, NOW), AppendInfo)
    return partition


def stable(partition: Partition) -> bool:
    return partition.readable_end_offset(read_committed=True) == partition.log.log_end_offset


async def write(
    wire: Wire,
    topics: dict[str, list[int]],
    *,
    epoch: int = 3,
    version: int = 2,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> list[int]:
    """Send one marker; return the error codes of its rows."""
    marker = WritableTxnMarker(
        PRODUCER,
        epoch,
        True,
        [WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
        coordinator_epoch,
        transaction_version,
    )
    [answered] = (await wire.ask(WriteTxnMarkersRequest([marker]), version)).markers
    assert answered.producer_id == PRODUCER
    rows = [(topic.name, row.partition_index) for topic in answered.topics for row in topic.partitions]
    assert rows == [(name, index) for name, indexes in topics.items() for index in indexes]
    return [row.error_code for topic in answered.topics for row in topic.partitions]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_marker_ends_the_transaction_in_its_partitions(broker: Broker, wire: Wire, version: int) -> None:
    await create(wire, "t", 2)
    partitions = [open_transaction(broker, "t", index=index) for index in range(2)]
    assert not any(map(stable, partitions))

    assert await write(wire, {"t": [0, 1]}, version=version, coordinator_epoch=5) == [ErrorCode.NONE] * 2

    assert all(map(stable, partitions))
    [producer] = (await describe(wire, "t")).active_producers
    assert (producer.producer_epoch, producer.coordinator_epoch, producer.current_txn_start_offset) == (3, 5, -1)


async def test_an_open_transaction_is_described(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    open_transaction(broker, "t")
    await write(wire, {"t": [0]}, coordinator_epoch=5)
    open_transaction(broker, "t", sequence=1)

    assert (await describe(wire, "t")).active_producers == [ProducerState(PRODUCER, 3, 1, NOW, 5, 2)]


async def test_each_partition_has_its_own_error(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", 2)
    await create(wire, "led-by-another")
    publish(broker, "led-by-another", leader=OTHER, isr={OTHER: 9})
    partition = open_transaction(broker, "t")

    codes = await write(wire, {"t": [0, 1, 2], "missing": [0], "led-by-another": [0]})

    assert codes == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert stable(partition)


async def test_markers_of_older_epochs_are_refused(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    partition = open_transaction(broker, "t")

    assert await write(wire, {"t": [0]}, epoch=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert await write(wire, {"t": [0]}, transaction_version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert not stable(partition)
    assert await write(wire, {"t": [0]}, epoch=4, transaction_version=2, coordinator_epoch=5) == [ErrorCode.NONE]
    assert await write(wire, {"t": [0]}, epoch=4, transaction_version=2, coordinator_epoch=5) == [ErrorCode.NONE]
    assert stable(partition)
    open_transaction(broker, "t", epoch=4)
    assert await write(wire, {"t": [0]}, epoch=4, transaction_version=2, coordinator_epoch=5) == [
        ErrorCode.INVALID_PRODUCER_EPOCH
    ]
    assert await write(wire, {"t": [0]}, epoch=5, transaction_version=2, coordinator_epoch=4) == [
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    ]
    assert not stable(partition)


async def test_before_version_2_of_the_request_the_epoch_may_be_equal(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    open_transaction(broker, "t")
    assert await write(wire, {"t": [0]}, version=1, transaction_version=2) == [ErrorCode.NONE]


async def test_a_marker_is_answered_after_its_sync(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", flush_messages="2")
    partition = open_transaction(broker, "t")
    assert partition.log.recovery_point == 0

    assert await write(wire, {"t": [0]}) == [ErrorCode.NONE]

    assert partition.log.recovery_point == 2
    assert stable(partition)


async def test_offsets_are_ended_by_the_group_coordinator(broker: Broker, wire: Wire, committer: GroupMember) -> None:
    await committer.commit("t", 5, 9)
    partitions = [broker.services.partitions.get("__consumer_offsets", index) for index in range(3)]
    ends = [partition.log.log_end_offset for partition in partitions]

    codes = await write(wire, {"__consumer_offsets": [0, 1, 2, 3]})

    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [partition.log.log_end_offset - end for partition, end in zip(partitions, ends, strict=True)] == [1, 1, 1]
    assert all(map(stable, partitions))


async def test_there_may_be_no_markers(wire: Wire) -> None:
    assert (await wire.ask(WriteTxnMarkersRequest([]), 2)).markers == []
