from __future__ import annotations

import struct
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, write_crc
from tests.handlers.busy_threads import busy_search_threads
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


async def test_tiered_offsets_are_unknown(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))

    assert await found(wire, EARLIEST_LOCAL) == (-1, 0, 0)
    assert await found(wire, LATEST_TIERED) == NOTHING
    assert await found(wire, EARLIEST_PENDING_UPLOAD) == NOTHING


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)],
)
async def test_a_special_timestamp_is_refused_before_its_first_version(
    wire: Wire, timestamp: int, first_version: int
) -> None:
    await create(wire, "t")

    assert (await look_up(wire, timestamp, version=first_version)).error_code == ErrorCode.NONE
    before = await look_up(wire, timestamp, version=first_version - 1)
    assert before.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_other_negative_timestamps_are_refused(wire: Wire) -> None:
    await create(wire, "t")

    assert (await look_up(wire, -7)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_partitions_that_do_not_exist_are_unknown(wire: Wire) -> None:
    await create(wire, "t")

    assert (await look_up(wire, LATEST, partition=1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    row = await look_up(wire, LATEST, topic="missing")
    assert (row.error_code, row.offset, row.timestamp) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


async def test_another_leader_epoch_is_refused(wire: Wire) -> None:
    await create(wire, "t")

    assert (await look_up(wire, LATEST, epoch=0)).error_code == ErrorCode.NONE
    assert (await look_up(wire, LATEST, epoch=1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_a_partition_named_twice_is_refused(wire: Wire) -> None:
    await create(wire, "t")
    twice = [ListOffsetsPartition(0, timestamp=LATEST), ListOffsetsPartition(0, timestamp=EARLIEST)]

    [topic] = (await wire.ask(ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", twice)]), 5)).topics

    assert {row.error_code for row in topic.partitions} == {ErrorCode.INVALID_REQUEST}


async def test_read_committed_ends_at_the_last_stable_offset(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    partition = broker.services.partitions.get("t", 0)
    open_transaction = batch(b"b", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition.append_as_leader(memoryview(bytearray(open_transaction)), 1, NOW)

    assert (await look_up(wire, LATEST)).offset == 2
    assert (await look_up(wire, LATEST, isolation_level=1)).offset == 1
    assert await found(wire, NOW, isolation_level=1) == (NOW, 0, 0)
    assert await found(wire, MAX_TIMESTAMP, isolation_level=1) == (NOW, 0, 0)


def garbled(codec: Codec) -> bytes:
    """A batch with a sound header, and records that no one can decode."""
    data = bytearray(batch(b"v" * 100, codec=codec))
    data[BATCH_HEADER_SIZE + 1 : BATCH_HEADER_SIZE + 11] = b"\xff" * 10
    write_crc(data, 0, len(data))
    return bytes(data)


async def append_stored(broker: Broker, topic: str, partition: int, data: bytes) -> None:
    """Put a batch into the log as if it was damaged there."""
    broker.services.partitions.get(topic, partition).append_as_leader(memoryview(bytearray(data)), 1, NOW)


@pytest.mark.parametrize("timestamp", [NOW, MAX_TIMESTAMP])
async def test_a_stored_batch_that_cannot_be_decoded_fails_its_row_only(
    broker: Broker, wire: Wire, timestamp: int
) -> None:
    await create(wire, "t", 6)
    for codec in Codec:
        await append_stored(broker, "t", codec, garbled(codec))
    await produce(wire, "t", batch(b"sound"), partition=5)

    wanted = [ListOffsetsTopic("t", [ListOffsetsPartition(index, -1, timestamp) for index in range(6)])]
    [found] = (await wire.ask(ListOffsetsRequest(-1, topics=wanted), 8)).topics

    assert [row.error_code for row in found.partitions] == [
        ErrorCode.INVALID_RECORD,
        *[ErrorCode.UNKNOWN_SERVER_ERROR] * 4,
        ErrorCode.NONE,
    ]  # as from Apache Kafka 4.3.1
    assert [row.offset for row in found.partitions] == [-1] * 5 + [0]


async def test_a_stored_batch_that_expands_too_far_fails_its_row_only(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", 2)
    await produce(wire, "t", batch(bytes(128 << 20), codec=Codec.ZSTD))
    await produce(wire, "t", batch(b"sound"), partition=1)

    assert (await look_up(wire, NOW)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await found(wire, NOW, partition=1) == (NOW, 0, 0)


@pytest.mark.parametrize("codec", Codec)
async def test_others_are_answered_while_a_large_batch_is_searched(broker: Broker, wire: Wire, codec: Codec) -> None:
    await create(wire, "t", 3)
    for partition in (0, 1):
        await produce(wire, "t", batch(b"x" * 100_000, codec=codec), partition=partition)
    await produce(wire, "t", batch(b"small"), partition=2)
    rows = [ListOffsetsPartition(0, -1, NOW), ListOffsetsPartition(2, -1, LATEST), ListOffsetsPartition(1, -1, NOW + 1)]
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", rows)])

    async with busy_search_threads(broker):
        await wire.send(request, 8)
        async with Wire("127.0.0.1", broker.port) as other:
            assert await found(other, NOW, partition=2) == (NOW, 0, 0)
    [answered] = (await wire.receive(request, 8)).topics

    assert [(row.partition_index, row.timestamp, row.offset) for row in answered.partitions] == [
        (0, NOW, 0),
        (2, -1, 1),
        (1, -1, -1),
    ]


async def test_headers_with_too_late_timestamps_delay_no_other_request(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    lying = bytearray(batch(b"x" * 30_000))
    struct.pack_into(">q", lying, 35, NOW + 10**6)
    write_crc(lying, 0, len(lying))
    for _ in range(5):
        await produce(wire, "t", bytes(lying))

    async with busy_search_threads(broker), Wire("127.0.0.1", broker.port) as slow:
        request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, NOW + 10)])])
        await slow.send(request, 8)
        assert await found(wire, LATEST) == (-1, 5, 0)
