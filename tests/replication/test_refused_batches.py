"""The series that a refused batch moves. The expected values are Apache Kafka 4.3.1's, read through JMX."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metrics.counts.metrics import TOPIC_COUNTS, Metrics
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import write_crc
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import NOW, batch, create, new_producer_id, produce, produce_request
from tests.wire import Wire

NOTHING: dict[str, int] = {}
FAILED = {"produce_requests": 1, "failed_produce_requests": 1}
GOOD = batch(b"a", b"b")


def poked(layout: str, position: int, value: int) -> bytes:
    """A valid batch with one number changed, and its checksum updated."""
    data = bytearray(GOOD)
    struct.pack_into(layout, data, position, value)
    write_crc(data, 0, len(data))
    return bytes(data)


def keyless(codec: Codec) -> bytes:
    """A batch of a record with a key, and three without."""
    builder = BatchBuilder(codec=codec)
    for key in (b"k", None, None, None):
        builder.append(NOW, key, b"v")
    return bytes(builder.build())


def counts(metrics: Metrics, topic: str) -> dict[str, int]:
    """The counts of a topic and of refused records, without zeros."""
    found = {name: getattr(metrics.topic(topic), name) for name in TOPIC_COUNTS}
    found |= {name: getattr(metrics, name) for name in dir(metrics) if name.endswith("_records")}
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize(
    ("records", "moved"),
    [
        pytest.param(b"", NOTHING, id="nothing"),
        pytest.param(GOOD[:-1], NOTHING, id="half a batch"),
        pytest.param(GOOD + GOOD, NOTHING, id="two batches"),
        pytest.param(poked(">b", 16, 1), NOTHING, id="an old format"),
        pytest.param(poked(">b", 16, 9), NOTHING, id="a format of the future"),
        pytest.param(poked(">i", 8, 5), NOTHING, id="a length that no batch has"),
        pytest.param(GOOD[:-1] + b"!", {"produce_requests": 1, "invalid_crc_records": 1}, id="checksum"),
        pytest.param(poked(">q", 0, 3), FAILED, id="base offset"),
        pytest.param(poked(">i", 57, 5), {**FAILED, "invalid_offset_or_sequence_records": 1}, id="number of records"),
        pytest.param(poked(">i", 57, 0), {**FAILED, "invalid_offset_or_sequence_records": 1}, id="no records"),
        pytest.param(poked(">i", 23, -1), {**FAILED, "invalid_offset_or_sequence_records": 1}, id="last offset"),
        pytest.param(poked(">h", 21, 0x20), {**FAILED, "invalid_offset_or_sequence_records": 1}, id="control batch"),
        pytest.param(
            batch(b"a", producer_id=1, producer_epoch=0, base_sequence=-1),
            {**FAILED, "invalid_offset_or_sequence_records": 1},
            id="no sequence",
        ),
        pytest.param(poked(">h", 21, 7), FAILED, id="unknown codec"),
    ],
)  # fmt: skip
async def test_an_invalid_batch(broker: Broker, wire: Wire, records: bytes, moved: dict[str, int]) -> None:
    await create(wire, "t")

    row = await produce(wire, "t", records)

    assert row.error_code != ErrorCode.NONE
    assert counts(broker.metrics, "t") == moved


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_records_without_a_key_are_counted_one_by_one(broker: Broker, wire: Wire, codec: Codec) -> None:
    await create(wire, "t", cleanup_policy="compact")

    assert (await produce(wire, "t", keyless(codec))).error_code == ErrorCode.INVALID_RECORD

    assert counts(broker.metrics, "t") == {**FAILED, "no_key_compacted_topic_records": 3}


async def test_timestamps_out_of_bounds_have_no_series_of_their_own(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", message_timestamp_before_max_ms="1000")

    assert (await produce(wire, "t", GOOD)).error_code == ErrorCode.INVALID_TIMESTAMP

    assert counts(broker.metrics, "t") == FAILED


@pytest.mark.parametrize("values", [20, 2000], ids=["on the loop", "on the writer thread"])
async def test_a_batch_that_is_too_large_is_counted_by_its_bytes(broker: Broker, wire: Wire, values: int) -> None:
    await create(wire, "t", max_message_bytes="100")
    records = batch(*[b"v" * 100] * values)

    assert (await produce(wire, "t", records)).error_code == ErrorCode.MESSAGE_TOO_LARGE

    assert counts(broker.metrics, "t") == {"produce_requests": 1, "bytes_rejected": len(records)}


async def test_a_batch_that_grows_too_large_is_counted_as_the_client_sent_it(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", max_message_bytes="300", compression_type="uncompressed")
    records = batch(*[b"v" * 100] * 10, codec=Codec.GZIP)

    assert (await produce(wire, "t", records)).error_code == ErrorCode.MESSAGE_TOO_LARGE

    assert counts(broker.metrics, "t") == {"produce_requests": 1, "bytes_rejected": len(records)}


async def test_more_bytes_than_a_segment_are_no_failure(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", segment_bytes="1048576", max_message_bytes="2000000")

    assert (await produce(wire, "t", batch(b"v" * 1_100_000))).error_code == ErrorCode.RECORD_LIST_TOO_LARGE

    assert counts(broker.metrics, "t") == {"produce_requests": 1}


async def test_zstd_before_version_7_moves_nothing(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")

    row = await produce(wire, "t", batch(b"v", codec=Codec.ZSTD), version=6)

    assert row.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert counts(broker.metrics, "t") == NOTHING


async def test_sequences_out_of_order_and_old_epochs_are_failures(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    producer_id = await new_producer_id(wire)

    def of_producer(epoch: int, sequence: int) -> bytes:
        return batch(b"a", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    await produce(wire, "t", of_producer(1, 0))
    codes = [(await produce(wire, "t", of_producer(*wrong))).error_code for wrong in ((1, 7), (0, 1))]

    assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH]
    counted = counts(broker.metrics, "t")
    assert (counted["produce_requests"], counted["failed_produce_requests"]) == (3, 2)
    assert "invalid_offset_or_sequence_records" not in counted


async def test_another_leader_is_no_failure_but_too_few_replicas_are(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", min_insync_replicas="2")
    publish(broker, "t", leader=OTHER, isr={SELF: 1000, OTHER: 9})
    assert (await produce(wire, "t", GOOD)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert counts(broker.metrics, "t") == {"produce_requests": 1}

    publish(broker, "t", leader=SELF, isr={SELF: 1000})
    assert (await produce(wire, "t", GOOD, acks=-1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert counts(broker.metrics, "t") == {"produce_requests": 2, "failed_produce_requests": 1}


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda wire: produce(wire, "t", GOOD, partition=5), id="unknown partition"),
        pytest.param(lambda wire: produce(wire, "t", GOOD, acks=5), id="unknown acks"),
        pytest.param(
            lambda wire: produce(wire, "t", batch(b"a", is_transactional=True, producer_id=1, base_sequence=0)),
            id="no transactional id",
        ),
    ],
)
async def test_refusals_before_the_log_move_nothing(broker: Broker, wire: Wire, ask: Callable[[Wire], Any]) -> None:
    await create(wire, "t")

    assert (await ask(wire)).error_code != ErrorCode.NONE

    assert counts(broker.metrics, "t") == NOTHING


async def test_a_repeated_batch_counts_again(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    records = batch(b"a", b"b", producer_id=await new_producer_id(wire), producer_epoch=0, base_sequence=0)

    for _ in range(2):
        assert (await produce(wire, "t", records)).base_offset == 0

    assert counts(broker.metrics, "t") == {"produce_requests": 2, "messages_in": 4, "bytes_in": 2 * len(records)}


async def test_recompressed_records_are_conversions(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", compression_type="gzip")
    plain, compressed = batch(*[b"v" * 100] * 4), batch(b"v", codec=Codec.GZIP)

    for records in (plain, compressed):
        assert (await produce(wire, "t", records)).error_code == ErrorCode.NONE

    assert counts(broker.metrics, "t") == {
        "produce_requests": 2,
        "messages_in": 5,
        "bytes_in": len(plain) + len(compressed),  # as the clients sent them
        "produce_message_conversions": 4,
    }


async def test_a_refusal_without_acks_is_counted_too(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")

    async with Wire("127.0.0.1", broker.port) as other:
        await other.send(produce_request("t", GOOD[:-1] + b"!", acks=0), 9)
        assert await asyncio.wait_for(other.is_closed_by_peer(), 10)

    assert counts(broker.metrics, "t") == {"produce_requests": 1, "invalid_crc_records": 1}
