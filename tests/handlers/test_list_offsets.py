from __future__ import annotations

from typing import Any

import pytest

from broker.broker import Broker
from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.records import BatchBuilder
from tests.handlers.requests import NOW, batch, create, produce
from tests.wire import Wire

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NOTHING = (-1, -1, -1)


async def look_up(
    wire: Wire,
    timestamp: int,
    *,
    version: int = 11,
    topic: str = "t",
    partition: int = 0,
    epoch: int = -1,
    **fields: int,
) -> ListOffsetsPartitionResponse:
    wanted = [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, epoch, timestamp)])]
    [[row]] = [
        found.partitions for found in (await wire.ask(ListOffsetsRequest(-1, topics=wanted, **fields), version)).topics
    ]
    assert isinstance(row, ListOffsetsPartitionResponse)
    return row


async def found(wire: Wire, timestamp: int, **fields: Any) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch."""
    row = await look_up(wire, timestamp, **fields)
    assert row.error_code == ErrorCode.NONE
    return row.timestamp, row.offset, row.leader_epoch


def at(*timestamps: int) -> bytes:
    builder = BatchBuilder()
    for timestamp in timestamps:
        builder.append(timestamp, None, b"v")
    return bytes(builder.build())


@pytest.mark.parametrize("version", range(1, 12))
async def test_the_ends_of_a_partition(wire: Wire, version: int) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))

    epoch = 0 if version >= 4 else -1
    assert await found(wire, EARLIEST, version=version) == (-1, 0, epoch)
    assert await found(wire, LATEST, version=version) == (-1, 3, epoch)


async def test_an_empty_partition(wire: Wire) -> None:
    await create(wire, "t")

    assert await found(wire, EARLIEST) == (-1, 0, 0)
    assert await found(wire, LATEST) == (-1, 0, 0)
    assert await found(wire, EARLIEST_LOCAL) == (-1, 0, 0)
    assert await found(wire, MAX_TIMESTAMP) == NOTHING
    assert await found(wire, NOW) == NOTHING


async def test_the_first_record_not_older_than_a_time(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", at(NOW, NOW + 10))
    await produce(wire, "t", at(NOW + 50, NOW + 20))

    assert await found(wire, 0) == (NOW, 0, 0)
    assert await found(wire, NOW + 1) == (NOW + 10, 1, 0)
    assert await found(wire, NOW + 11) == (NOW + 50, 2, 0)
    assert await found(wire, NOW + 50) == (NOW + 50, 2, 0)
    assert await found(wire, NOW + 51) == NOTHING


async def test_the_record_with_the_largest_timestamp(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", at(NOW, NOW + 50, NOW + 20))
    await produce(wire, "t", at(NOW + 30))

    assert await found(wire, MAX_TIMESTAMP) == (NOW + 50, 1, 0)


async def test_nothing_is_tiered(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))

    assert await found(wire, EARLIEST_LOCAL) == (-1, 0, 0)
    assert await found(wire, LATEST_TIERED) == NOTHING
    assert await found(wire, EARLIEST_PENDING_UPLOAD) == NOTHING


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)],
)
async def test_special_timestamps_have_a_first_version(wire: Wire, timestamp: int, first_version: int) -> None:
    await create(wire, "t")

    assert (await look_up(wire, timestamp, version=first_version)).error_code == ErrorCode.NONE
    before = await look_up(wire, timestamp, version=first_version - 1)
    assert before.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_other_negative_timestamps_mean_nothing(wire: Wire) -> None:
    await create(wire, "t")

    assert (await look_up(wire, -7)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_partitions_that_do_not_exist_are_unknown(wire: Wire) -> None:
    await create(wire, "t")

    assert (await look_up(wire, LATEST, partition=1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    row = await look_up(wire, LATEST, topic="missing")
    assert (row.error_code, row.offset, row.timestamp) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


async def test_the_leader_epoch_must_be_the_clients(wire: Wire) -> None:
    await create(wire, "t")

    assert (await look_up(wire, LATEST, epoch=0)).error_code == ErrorCode.NONE
    assert (await look_up(wire, LATEST, epoch=1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_a_partition_is_named_once(wire: Wire) -> None:
    await create(wire, "t")
    twice = [ListOffsetsPartition(0, timestamp=LATEST), ListOffsetsPartition(0, timestamp=EARLIEST)]

    [topic] = (await wire.ask(ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", twice)]), 5)).topics

    assert {row.error_code for row in topic.partitions} == {ErrorCode.INVALID_REQUEST}


async def test_read_committed_ends_at_the_last_stable_offset(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    partition = broker.services.partitions.get("t", 0)
    open_transaction = batch(b"b", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition.append_as_leader(memoryview(bytearray(open_transaction)), 1, NOW, 13)

    assert (await look_up(wire, LATEST)).offset == 2
    assert (await look_up(wire, LATEST, isolation_level=1)).offset == 1
    assert await found(wire, NOW, isolation_level=1) == (NOW, 0, 0)
    assert await found(wire, MAX_TIMESTAMP, isolation_level=1) == (NOW, 0, 0)
