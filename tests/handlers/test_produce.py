from __future__ import annotations

import asyncio
import struct

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_header import write_crc
from tests.handlers.busy_threads import busy_writer_threads
from tests.handlers.requests import (
    batch,
    create,
    fetch,
    new_producer_id,
    produce,
    produce_request,
    records_in,
    values_in,
)
from tests.wire import Wire

LARGE = b"x" * 100_000


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
async def test_records_are_appended_and_their_offset_returned(wire: Wire, version: int, acks: int) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"before"))

    row = await produce(wire, "t", batch(b"a", b"b"), acks=acks, version=version)

    assert (row.error_code, row.base_offset, row.log_append_time_ms) == (ErrorCode.NONE, 1, -1)
    assert row.log_start_offset == (0 if version >= 5 else -1)
    assert values_in(await fetch(wire, "t")) == [b"before", b"a", b"b"]


async def test_from_version_13_on_topics_have_ids(wire: Wire) -> None:
    topic_id = await create(wire, "t")
    topics = [
        TopicProduceData("", topic_id, [PartitionProduceData(0, batch(b"a"))]),
        TopicProduceData("", bytes(range(16)), [PartitionProduceData(0, batch(b"b"))]),
    ]

    response = await wire.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 13)

    assert [topic.topic_id for topic in response.responses] == [topic_id, bytes(range(16))]
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_refused_batch_is_answered_with_the_log_start_offset(wire: Wire) -> None:
    await create(wire, "t")
    gap = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=7)
    await produce(wire, "t", batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))

    row = await produce(wire, "t", gap)
    assert (row.error_code, row.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    corrupt = bytearray(batch(b"a"))
    corrupt[-1] ^= 1
    row = await produce(wire, "t", bytes(corrupt))
    assert (row.error_code, row.log_start_offset) == (ErrorCode.CORRUPT_MESSAGE, -1)


async def test_without_acks_there_is_no_response(wire: Wire) -> None:
    await create(wire, "t")

    await wire.send(produce_request("t", batch(b"a"), acks=0), 9)
    row = await produce(wire, "t", batch(b"b"))

    assert row.base_offset == 1


async def test_a_failure_without_acks_closes_the_connection(wire: Wire) -> None:
    await wire.send(produce_request("missing", batch(b"a"), acks=0), 9)

    assert await wire.is_closed_by_peer()


async def test_other_acks_are_refused(wire: Wire) -> None:
    await create(wire, "t")

    row = await produce(wire, "t", batch(b"a"), acks=2)

    assert (row.error_code, row.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert values_in(await fetch(wire, "t")) == []


async def test_each_partition_succeeds_or_fails_independently(wire: Wire) -> None:
    await create(wire, "t", 4)
    data = [
        PartitionProduceData(0, batch(b"a")),
        PartitionProduceData(7, batch(b"b")),
        PartitionProduceData(1, b""),
        PartitionProduceData(2, batch(b"c") + batch(b"d")),
        PartitionProduceData(3, batch(b"e")),
    ]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData("t", partition_data=data)])

    [topic] = (await wire.ask(request, 9)).responses

    assert {row.index: row.error_code for row in topic.partition_responses} == {
        0: ErrorCode.NONE,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        1: ErrorCode.INVALID_RECORD,
        2: ErrorCode.INVALID_RECORD,
        3: ErrorCode.NONE,
    }


async def test_a_topic_is_not_created_by_produce(wire: Wire) -> None:
    row = await produce(wire, "missing", batch(b"a"))

    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_wrong_checksum_is_refused_and_nothing_appended(wire: Wire) -> None:
    await create(wire, "t")
    damaged = bytearray(batch(b"abc"))
    damaged[-2] ^= 1

    row = await produce(wire, "t", bytes(damaged))

    assert row.error_code == ErrorCode.CORRUPT_MESSAGE
    assert (await fetch(wire, "t")).high_watermark == 0


async def test_refused_records_are_named(wire: Wire) -> None:
    await create(wire, "t", message_timestamp_before_max_ms="1000")

    row = await produce(wire, "t", batch(b"a", b"b"))

    assert row.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in row.record_errors] == [0, 1]


async def test_zstd_needs_version_7(wire: Wire) -> None:
    await create(wire, "t")
    records = batch(b"a", codec=Codec.ZSTD)

    assert (await produce(wire, "t", records, version=6)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await produce(wire, "t", records, version=7)).error_code == ErrorCode.NONE


async def test_zstd_is_refused_for_version_6_only_in_one_whole_batch(wire: Wire) -> None:
    await create(wire, "t")
    records = bytes(batch(b"a", codec=Codec.ZSTD))

    assert (await produce(wire, "t", records[:-1], version=6)).error_code == ErrorCode.INVALID_RECORD
    assert (await produce(wire, "t", records * 2, version=6)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await produce(wire, "t", records * 2, version=7)).error_code == ErrorCode.INVALID_RECORD


async def test_the_broker_sets_timestamps_with_log_append_time(wire: Wire) -> None:
    await create(wire, "t", message_timestamp_type="LogAppendTime")

    row = await produce(wire, "t", batch(b"a", b"b"))

    assert row.log_append_time_ms > 0
    timestamps = {record.timestamp for record in records_in(await fetch(wire, "t"))}
    assert timestamps == {row.log_append_time_ms}


async def test_a_duplicate_batch_returns_its_first_offset(wire: Wire) -> None:
    await create(wire, "t")
    producer_id = await new_producer_id(wire)
    first = batch(b"a", b"b", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    gap = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=9)

    assert (await produce(wire, "t", first)).base_offset == 0
    repeated = await produce(wire, "t", first)
    assert (repeated.error_code, repeated.base_offset) == (ErrorCode.NONE, 0)
    assert (await produce(wire, "t", gap)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values_in(await fetch(wire, "t")) == [b"a", b"b"]


async def test_large_and_small_appends_of_a_connection_keep_their_order(wire: Wire) -> None:
    await create(wire, "t")
    values = [b"a", LARGE, b"b", LARGE, b"c"]
    requests = [produce_request("t", batch(value)) for value in values]

    for request in requests:
        await wire.send(request, 9)
    rows = [(await wire.receive(request, 9)).responses[0].partition_responses[0] for request in requests]

    assert [row.base_offset for row in rows] == [0, 1, 2, 3, 4]
    assert values_in(await fetch(wire, "t")) == values


async def test_with_flush_messages_an_acknowledged_record_is_on_the_disk(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", flush_messages="1")

    flushes = broker.metrics.log_flush.times().count

    row = await produce(wire, "t", batch(b"a", b"b"))

    assert row.error_code == ErrorCode.NONE
    assert broker.services.partitions.get("t", 0).log.recovery_point == 2
    assert broker.metrics.log_flush.times().count == flushes + 1


async def test_many_connections_flush_together(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", flush_messages="1")

    async def one() -> int:
        async with Wire("127.0.0.1", broker.port) as own:
            return (await produce(own, "t", batch(b"a"))).base_offset

    assert sorted(await asyncio.gather(*(one() for _ in range(8)))) == list(range(8))
    assert broker.services.partitions.get("t", 0).log.recovery_point == 8


async def test_traffic_is_counted_by_topic(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    records = batch(b"a", b"b")

    await produce(wire, "t", records)
    await fetch(wire, "t")

    counted = broker.metrics.topic("t")
    assert (counted.produce_requests, counted.messages_in, counted.bytes_in) == (1, 2, len(records))
    assert (counted.fetch_requests, counted.bytes_out) == (1, len(records))


async def test_errors_of_partitions_are_counted(broker: Broker, wire: Wire) -> None:
    await produce(wire, "missing", batch(b"a"))
    await fetch(wire, "missing")

    assert broker.metrics.api("Produce").errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 1}
    assert broker.metrics.api("Fetch").errors == {ErrorCode.NONE: 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 1}


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_oldest_versions_are_advertised_but_not_served(wire: Wire, version: int) -> None:
    wire.writer.write(bytes.fromhex("0000000e") + bytes([0, 0, 0, version]) + bytes(10))

    assert await wire.is_closed_by_peer()


@pytest.mark.parametrize("properties", [{"cleanup_policy": "compact"}, {"compression_type": "gzip"}])
async def test_others_are_answered_while_a_small_batch_that_expands_is_decoded(
    broker: Broker, wire: Wire, properties: dict[str, str]
) -> None:
    await create(wire, "expands", **properties)
    await create(wire, "t")
    request = produce_request("expands", batch(LARGE, codec=Codec.ZSTD))
    async with busy_writer_threads(broker):
        await wire.send(request, 9)
        async with Wire("127.0.0.1", broker.port) as other:
            assert (await produce(other, "t", batch(b"a"))).error_code == ErrorCode.NONE
            assert values_in(await fetch(other, "expands")) == []
    [[row]] = [topic.partition_responses for topic in (await wire.receive(request, 9)).responses]
    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.usefixtures("only_here")  # Kafka, which decompresses record by record, takes it
@pytest.mark.parametrize("properties", [{"cleanup_policy": "compact"}, {"compression_type": "gzip"}])
async def test_a_batch_that_expands_too_far_is_too_large_if_it_must_be_decoded(
    wire: Wire, properties: dict[str, str]
) -> None:
    await create(wire, "t", **properties)
    row = await produce(wire, "t", batch(bytes(128 << 20), codec=Codec.ZSTD))
    assert row.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "134217728" in row.error_message


@pytest.mark.parametrize("codec", Codec)
async def test_a_batch_that_cannot_hold_its_records_count_takes_no_offsets(wire: Wire, codec: Codec) -> None:
    await create(wire, "t")
    data = bytearray(batch(b"v", codec=codec))
    struct.pack_into(">i", data, 23, 2**31 - 2)
    struct.pack_into(">i", data, 57, 2**31 - 1)
    write_crc(data, 0, len(data))

    assert (await produce(wire, "t", bytes(data))).error_code == ErrorCode.INVALID_RECORD
    assert (await produce(wire, "t", batch(b"next"))).base_offset == 0
