from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from tests.handlers.cluster import OTHER, publish
from tests.handlers.requests import NOW, batch, create, produce
from tests.wire import Wire


async def describe(wire: Wire, topic: str, index: int = 0) -> PartitionResponse:
    [found] = (await wire.ask(DescribeProducersRequest([TopicRequest(topic, [index])]), 0)).topics
    [row] = found.partitions
    assert (found.name, row.partition_index) == (topic, index)
    assert isinstance(row, PartitionResponse)
    return row


async def test_the_state_of_a_producer_is_described(wire: Wire) -> None:
    await create(wire, "t", 2)
    await produce(wire, "t", batch(b"a", producer_id=77, producer_epoch=3, base_sequence=0))
    await produce(wire, "t", batch(b"b", b"c", producer_id=77, producer_epoch=3, base_sequence=1))

    assert (await describe(wire, "t")).active_producers == [ProducerState(77, 3, 2, NOW + 1, -1, -1)]
    assert (await describe(wire, "t", 1)).active_producers == []


async def test_unknown_partitions_are_errors(wire: Wire) -> None:
    await create(wire, "t")

    assert (await describe(wire, "t", 1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await describe(wire, "missing")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await describe(wire, "bad name")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_only_the_leader_describes_producers(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", leader=OTHER, isr={OTHER: 9})

    assert (await describe(wire, "t")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
