from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.handlers.requests import batch, create, fetch, new_producer_id, produce, produce_request, values_in
from tests.wire import Wire

EARLIEST, LATEST, LARGEST_TIMESTAMP = -2, -1, -3
HIGH_WATERMARK = -1


async def delete(
    wire: Wire, topic: str, offset: int, partition: int = 0, version: int = 2
) -> DeleteRecordsPartitionResult:
    wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])
    [found] = (await wire.ask(DeleteRecordsRequest([wanted], 5000), version)).topics
    [row] = found.partitions
    assert (found.name, row.partition_index) == (topic, partition)
    assert isinstance(row, DeleteRecordsPartitionResult)
    return row


async def deleted(wire: Wire, topic: str, offset: int, **fields: int) -> int:
    """Delete and return the low watermark."""
    row = await delete(wire, topic, offset, **fields)
    assert row.error_code == ErrorCode.NONE
    return row.low_watermark


async def offset_at(wire: Wire, topic: str, timestamp: int, version: int = 4) -> int:
    wanted = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=timestamp)])]
    [found] = (await wire.ask(ListOffsetsRequest(-1, topics=wanted), version)).topics
    offset: int = found.partitions[0].offset
    return offset


@pytest.mark.parametrize("version", range(3))
async def test_the_log_starts_at_the_offset(wire: Wire, version: int) -> None:
    await create(wire, "t")
    for value in (b"a", b"b", b"c"):
        await produce(wire, "t", batch(value))

    assert await deleted(wire, "t", 2, version=version) == 2

    assert await offset_at(wire, "t", EARLIEST) == 2
    assert (await fetch(wire, "t", 1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_in(await fetch(wire, "t", 2)) == [b"c"]


async def test_the_largest_timestamp_may_be_that_of_a_deleted_record(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))
    await deleted(wire, "t", 3)

    assert await offset_at(wire, "t", EARLIEST) == 3
    assert await offset_at(wire, "t", LARGEST_TIMESTAMP, version=7) == 2


async def test_the_log_start_offset_never_decreases(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))

    assert [await deleted(wire, "t", offset) for offset in (2, 1, 0)] == [2, 2, 2]


async def test_all_records_below_the_high_watermark_can_be_deleted(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))

    assert await deleted(wire, "t", HIGH_WATERMARK) == 3
    assert await offset_at(wire, "t", EARLIEST) == await offset_at(wire, "t", LATEST) == 3
    assert (await produce(wire, "t", batch(b"d"))).base_offset == 3


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "code"),
    [
        ("t", 0, 4, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("compacted", 0, 0, ErrorCode.POLICY_VIOLATION),
        ("both", 0, 0, ErrorCode.NONE),
        ("kept", 0, 0, ErrorCode.NONE),
        ("__consumer_offsets", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_invalid_deletions_are_refused(
    wire: Wire, topic: str, partition: int, offset: int, code: ErrorCode
) -> None:
    for name, policy in (("t", "delete"), ("compacted", "compact"), ("both", "compact,delete"), ("kept", "")):
        await create(wire, name, cleanup_policy=policy)
    await produce(wire, "t", batch(b"a", b"b", b"c"))

    row = await delete(wire, topic, offset, partition)

    assert row.error_code == code
    assert row.low_watermark == (-1 if code else 0)


async def test_records_of_internal_topics_cannot_be_deleted(wire: Wire) -> None:
    await wire.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)  # which creates the topic of groups

    while True:  # on Apache Kafka some milliseconds later
        row = await delete(wire, "__consumer_offsets", 0)
        if row.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            break

    assert row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_the_last_mention_of_a_partition_counts(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))
    wanted = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)]) for offset in (3, 1)]

    response = await wire.ask(DeleteRecordsRequest([*wanted, DeleteRecordsTopic("t")], 5000), 2)

    [[row]] = [topic.partitions for topic in response.topics]
    assert row.low_watermark == 1


async def test_a_producer_continues_after_all_its_records_were_deleted(wire: Wire) -> None:
    await create(wire, "t")
    producer_id = await new_producer_id(wire)
    for sequence in range(3):
        await produce(wire, "t", batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=sequence))

    await deleted(wire, "t", HIGH_WATERMARK)

    again = batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=2)
    following = batch(b"b", producer_id=producer_id, producer_epoch=0, base_sequence=3)
    assert (await produce(wire, "t", again)).base_offset == 2
    assert (await produce(wire, "t", following)).base_offset == 3


@pytest.mark.usefixtures("only_here")  # it starts its own broker
async def test_deleted_records_stay_deleted_after_a_restart(tmp_path: Path) -> None:
    for expected in (0, 2):
        async with Broker({"log.dirs": str(tmp_path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
            if not expected:
                await create(wire, "t")
                await produce(wire, "t", batch(b"a", b"b", b"c"))
            assert await offset_at(wire, "t", EARLIEST) == expected
            await deleted(wire, "t", 2)


@pytest.mark.usefixtures("broker")
async def test_it_waits_for_a_large_append_before_it(broker: Broker, wire: Wire) -> None:
    """An append on the writer thread and the new start must not run side by side."""
    await create(wire, "t")
    await produce(wire, "t", batch(b"first"))
    request = produce_request("t", batch(b"x" * 900_000))
    async with Wire("127.0.0.1", broker.port) as producer:
        await producer.send(request, 9)
        assert await deleted(wire, "t", 1) == 1
        response = await producer.receive(request, 9)

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert await offset_at(wire, "t", LATEST) == 2
