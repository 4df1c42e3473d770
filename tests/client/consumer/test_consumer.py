"""The consumer over a scripted network: the records that the user gets, and their order and time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    ClosedError,
    ConfigurationError,
    Consumer,
    ConsumerRecord,
)
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.messages.fetch import AbortedTransaction, FetchRequest
from odradek.protocol.records.batch_header import TimestampType
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker
from odradek.protocol.records.record_iterator import Record
from tests.client.reading import fill, one_log, read, values
from tests.client.scripted_broker import Broker
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import batch, now, numbers
from tests.client.virtual_time import simulated

T0 = ("t", 0)


# Records.


@simulated
async def test_poll_returns_the_records_in_order() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        records = await read(consumer, 100)
        assert values(records) == numbers(100)
        assert records[7] == ConsumerRecord("t", 0, 7, 7, None, b"7", (), TimestampType.CREATE_TIME, 0)
        assert await consumer.position(T0) == 100


@simulated
async def test_iteration_returns_each_record_and_moves_the_position() -> None:
    network, log = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        seen = 0
        async for record in consumer:
            assert record.offset == seen
            seen += 1
            assert await consumer.position(T0) == seen
            if seen == 50:
                break
        assert values(await consumer.poll(max_records=5)) == numbers(55)[50:]
        async for record in consumer:
            if record.offset == 99:
                fill(log, 10)
            if record.offset == 109:
                break


@pytest.mark.parametrize("group_id", [None, "g"])
@simulated
async def test_without_a_subscription_or_an_assignment_there_is_nothing_to_wait_for(group_id: str | None) -> None:
    network, _ = one_log(1)
    expected = r"no topic is subscribed, no partition assigned\. Call `await consumer.subscribe"
    async with Consumer(
        network.bootstrap, network=network, group_id=group_id, auto_offset_reset="earliest"
    ) as consumer:
        for _ in range(2):
            with pytest.raises(ConfigurationError, match=expected):
                async with asyncio.timeout(1):
                    await anext(consumer)
            with pytest.raises(ConfigurationError, match=expected):
                await consumer.poll(1000)
            consumer.assign([])


@pytest.mark.parametrize("codec", list(Codec))
@simulated
async def test_records_of_every_codec_are_read(codec: Codec) -> None:
    network, log = one_log()
    fill(log, 1000, per_batch=500, codec=codec)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 1000)) == numbers(1000)


@simulated
async def test_all_partitions_of_all_brokers_are_read_each_in_order() -> None:
    network = ScriptedNetwork(brokers=3)
    for log in network.create("t", 7):
        fill(log, 50)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions_for("t"))
        records = await read(consumer, 350)
    for partition in range(7):
        assert values([record for record in records if record.partition == partition]) == numbers(50)


@simulated
async def test_partitions_alternate() -> None:
    network = ScriptedNetwork()
    for log in network.create("t", 2):
        fill(log, 1000)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", max_partition_fetch_bytes=500
    ) as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        first = await read(consumer, 400)
    counts = [sum(record.partition == partition for record in first) for partition in (0, 1)]
    assert min(counts) > 100


@simulated
async def test_a_record_that_comes_later_arrives_at_once() -> None:
    network, log = one_log(10)
    async with Consumer(network.bootstrap, network=network, fetch_max_wait_ms=10000) as consumer:
        consumer.assign([T0])
        polling = asyncio.create_task(consumer.poll())
        await asyncio.sleep(3)
        fill(log, 10)
        assert values(await polling) == numbers(20)[10:]
        assert now() == pytest.approx(3, abs=0.01)


@simulated
async def test_poll_returns_nothing_after_its_timeout() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        assert await consumer.poll(timeout_ms=1500) == []
        assert now() == pytest.approx(1.5)


@simulated
async def test_poll_returns_no_more_than_max_records() -> None:
    network, _ = one_log(1000)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", max_poll_records=70
    ) as consumer:
        consumer.assign([T0])
        assert len(await consumer.poll()) == 70
        assert values(await consumer.poll(max_records=3)) == numbers(73)[70:]


@simulated
async def test_message_sets_of_old_brokers_are_read() -> None:
    """A record of magic 0 (`b"old"`, no key) and one of magic 1, encoded by hand as Kafka 0.9 and 0.10 stored them."""
    network, log = one_log(10)
    from zlib import crc32

    def message(offset: int, magic: int, timestamp: int | None, value: bytes) -> bytes:
        body = bytes([magic, 0]) + (b"" if timestamp is None else timestamp.to_bytes(8, "big"))
        body += (-1).to_bytes(4, "big", signed=True) + len(value).to_bytes(4, "big") + value
        body = crc32(body).to_bytes(4, "big") + body
        return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body

    old = message(5, 0, None, b"old") + message(6, 1, 1234, b"newer")

    async def serve_old(broker: Broker, request: FetchRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.responses[0].partitions[0].records = old + bytes(log.read(7, 1 << 20))
        return answer

    network.brokers[1].script("Fetch", serve_old)
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 5)
        records = await read(consumer, 3)
        assert [(record.offset, record.timestamp, record.timestamp_type, record.value) for record in records[:2]] == [
            (5, -1, None, b"old"),
            (6, 1234, TimestampType.CREATE_TIME, b"newer"),
        ]
        assert [record.leader_epoch for record in records] == [-1, -1, 0]


def test_records_of_a_log_and_of_a_consumer_have_the_same_fields() -> None:
    fields = ConsumerRecord.__struct_fields__
    assert fields[:2] == ("topic", "partition")
    assert fields[2 : 2 + len(Record._fields)] == Record._fields


# Skipped records.


@simulated
async def test_control_batches_are_skipped() -> None:
    network, log = one_log(10)
    log.add(build_end_txn_marker(EndTxnMarker(ControlRecordType.COMMIT, 0), 7, 0, 0, base_offset=10))
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)
        assert await consumer.poll(timeout_ms=100) == []
        assert await consumer.position(T0) == 11


def transactions(log: Log) -> None:
    """Records: committed, aborted, without transaction, and committed by the producer of the aborted ones."""

    def add(value: bytes, producer_id: int = -1) -> None:
        log.add(batch([value], log.end_offset, producer_id=producer_id, is_transactional=producer_id >= 0))

    def end(producer_id: int, how: ControlRecordType) -> None:
        log.add(build_end_txn_marker(EndTxnMarker(how, 0), producer_id, 0, 0, base_offset=log.end_offset))

    add(b"committed", 1)
    log.aborted.append(AbortedTransaction(2, log.end_offset))
    add(b"aborted", 2)
    add(b"plain")
    end(1, ControlRecordType.COMMIT)
    add(b"aborted too", 2)
    end(2, ControlRecordType.ABORT)
    add(b"again", 2)
    end(2, ControlRecordType.COMMIT)


@simulated
async def test_readers_of_committed_records_do_not_see_aborted_ones() -> None:
    network, log = one_log()
    transactions(log)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 3)) == [b"committed", b"plain", b"again"]
        assert await consumer.poll(timeout_ms=10) == []
        assert await consumer.position(T0) == 8


@simulated
async def test_readers_of_uncommitted_records_see_all_of_them() -> None:
    network, log = one_log()
    transactions(log)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 5)) == [b"committed", b"aborted", b"plain", b"aborted too", b"again"]


# Bounds.


@simulated
async def test_at_most_two_fetches_of_a_partition_are_buffered() -> None:
    network, _ = one_log(1000)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", max_partition_fetch_bytes=500
    ) as consumer:
        consumer.assign([T0])
        await consumer.poll(max_records=1)
        await asyncio.sleep(60)
        assert len(network.brokers[1].received(FetchRequest)) == 2
        assert values(await read(consumer, 999)) == numbers(1000)[1:]


@simulated
async def test_an_idle_partition_does_not_delay_one_with_a_full_buffer() -> None:
    network = ScriptedNetwork()
    busy, _ = network.create("t", 2)
    fill(busy, 1000)
    async with Consumer(
        network.bootstrap,
        network=network,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=500,
        fetch_max_wait_ms=10000,
    ) as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        await consumer.poll(max_records=1)
        await asyncio.sleep(5)
        start = now()
        await read(consumer, 999)
        assert now() - start < 0.2


@simulated
async def test_nothing_is_fetched_before_the_first_poll() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await consumer.position(T0)
        await asyncio.sleep(10)
        assert network.brokers[1].received(FetchRequest) == []


# Versions.


@simulated
async def test_requests_to_brokers_without_topic_ids_name_topics() -> None:
    network, _ = one_log(10, with_topic_ids=False)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)


@simulated
async def test_old_brokers_get_old_versions() -> None:
    network, _ = one_log(10)
    for name, version in (("Fetch", 4), ("Metadata", 4), ("ListOffsets", 2), ("ApiVersions", 0)):
        network.brokers[1].limit(name, version)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)


# Close.


@simulated
async def test_close_ends_iteration_and_a_waiting_poll() -> None:
    network, _ = one_log()
    consumer = Consumer(network.bootstrap, network=network)
    await consumer.start()
    consumer.assign([T0])

    async def iterate() -> list[ConsumerRecord]:
        return [record async for record in consumer]

    iterating = asyncio.create_task(iterate())
    await asyncio.sleep(1)
    await consumer.close()
    assert await iterating == []
    with pytest.raises(ClosedError):
        await consumer.poll()
    assert len(asyncio.all_tasks()) == 1
