"""Producer and consumer against a real broker: every record that is sent is read."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable

import pytest

from odradek.client import (
    BrokerError,
    Consumer,
    ConsumerRecord,
    OffsetOutOfRangeError,
    Producer,
    RecordMetadata,
    RecordTooLargeError,
    TopicExistsError,
    TopicPartition,
    UnknownTopicError,
)
from odradek.client.config import Acks, Address, CompressionType
from odradek.client.network.transport import TcpNetwork
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch_header import TimestampType
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("odradek", "apache")

HEADERS = [("first", b"1"), ("first", None), ("empty", b"")]


async def read_all(bootstrap: str, topic: str) -> dict[int, list[ConsumerRecord]]:
    """All records of a topic, by partition."""
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        partitions = await consumer.partitions_for(topic)
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        found: dict[int, list[ConsumerRecord]] = {partition.partition: [] for partition in partitions}
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for record in await consumer.poll():
                found[record.partition].append(record)
    return found


def values(records: Iterable[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_everything_that_is_sent_is_read(bootstrap: str, topic: str, codec: CompressionType) -> None:
    chance = random.Random(codec)
    async with Producer(bootstrap, compression_type=codec) as producer:
        sent: list[tuple[asyncio.Future[RecordMetadata], bytes | None, bytes | None]] = []
        for number in range(3000):
            key = chance.choice([None, b"", b"key %d" % (number % 50)])
            value = chance.choice([None, b"", b"value %d " % number * chance.randrange(1, 100)])
            headers = chance.choice([(), HEADERS])
            sent.append((await producer.send(topic, value, key=key, headers=headers, timestamp=number), key, value))
        metadata = [await future for future, _, _ in sent]
    found = await read_all(bootstrap, topic)
    assert sum(map(len, found.values())) == 3000
    for number, (at, (_, key, value)) in enumerate(zip(metadata, sent, strict=True)):
        record = found[at.partition][at.offset]
        assert (record.offset, record.timestamp) == (at.offset, number)
        assert (record.key, record.value) == (key, value)
        assert record.headers in ((), tuple(HEADERS))
    assert [record.offset for record in found[0]] == list(range(len(found[0])))


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_every_kind_of_acknowledgement(bootstrap: str, make_topic: MakeTopic, acks: Acks) -> None:
    topic = await make_topic(partitions=2)
    partition = TopicPartition(topic, 1)
    async with Consumer(bootstrap) as consumer, Producer(bootstrap, acks=acks) as producer:
        # With acks=0 there is no error while the partition has no leader, and the records would be lost.
        assert await consumer.end_offsets([partition]) == {partition: 0}
        sent = [await producer.send(topic, b"%d" % number, partition=1) for number in range(100)]
        offsets = [(await at).offset for at in sent]
        assert offsets == ([-1] * 100 if acks == 0 else list(range(100)))
        while (await consumer.end_offsets([partition]))[partition] < 100:
            pass  # without acknowledgements they may not have arrived yet
    assert values((await read_all(bootstrap, topic))[1]) == [b"%d" % number for number in range(100)]


async def test_sender_and_reader_get_log_append_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(message_timestamp_type="LogAppendTime")
    before = time.time_ns() // 1_000_000
    async with Producer(bootstrap) as producer:
        at = await (await producer.send(topic, b"", timestamp=1234))
    assert before <= at.timestamp <= time.time_ns() // 1_000_000
    [record] = (await read_all(bootstrap, topic))[0]
    assert (record.timestamp, record.timestamp_type) == (at.timestamp, TimestampType.LOG_APPEND_TIME)


async def test_offsets_of_times(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    partition = TopicPartition(topic, 0)
    async with Producer(bootstrap, batch_size=500) as producer:
        for number in range(1000):
            await producer.send(topic, b"%d" % number, timestamp=1_000_000 + 10 * number)
    async with Consumer(bootstrap) as consumer:
        for time_ms, offset in ((0, 0), (1_000_000, 0), (1_004_995, 500), (1_005_000, 500), (1_009_990, 999)):
            found = (await consumer.offsets_for_times({partition: time_ms}))[partition]
            assert found is not None
            assert (found.offset, found.timestamp) == (offset, 1_000_000 + 10 * offset)
        assert await consumer.offsets_for_times({partition: 2_000_000}) == {partition: None}
        consumer.assign([partition])
        await consumer.seek_to_timestamp(1_007_000)
        assert (await consumer.poll())[0].offset == 700


async def test_auto_offset_reset_with_an_offset_out_of_range(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        await (await producer.send(topic, b"only"))
    async with Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 7)
        with pytest.raises(OffsetOutOfRangeError, match=rf"fetch on {topic}-0 at .*: OFFSET_OUT_OF_RANGE"):
            await consumer.poll()
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 7)
        assert values(await consumer.poll()) == [b"only"]


async def test_a_new_record_wakes_a_waiting_reader(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    waits_long = Consumer(bootstrap, fetch_max_wait_ms=600_000, request_timeout_ms=700_000)
    async with waits_long as consumer, Producer(bootstrap, linger_ms=0) as producer:
        consumer.assign([(topic, 0)])
        await consumer.seek_to_end()
        assert await consumer.poll(timeout_ms=50) == []
        for number in range(20):
            await producer.send(topic, b"%d" % number)
            assert values(await consumer.poll()) == [b"%d" % number]  # long before the end of the longest wait


async def test_batches_above_max_message_bytes_are_split_and_records_above_it_fail(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(max_message_bytes=1000)
    async with Producer(bootstrap) as producer:
        sent = [await producer.send(topic, b"%d" % number * 50) for number in range(100, 300)]
        too_large = await producer.send(topic, bytes(2000))
        after = await producer.send(topic, b"after")
        with pytest.raises(RecordTooLargeError, match=rf"send records on {topic}-0 at .*max.message.bytes"):
            await too_large
        assert (await after).offset == 200
        assert [(await at).offset for at in sent] == list(range(200))
    found = (await read_all(bootstrap, topic))[0]
    assert values(found) == [b"%d" % number * 50 for number in range(100, 300)] + [b"after"]


async def test_a_compacted_topic_refuses_records_without_a_key(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(cleanup_policy="compact")
    async with Producer(bootstrap, batch_size=0) as producer:
        refused = await producer.send(topic, b"no key")
        taken = await producer.send(topic, b"value", key=b"key")
        with pytest.raises(BrokerError, match=r"INVALID_RECORD .*key") as raised:
            await refused
        assert raised.value.code is ErrorCode.INVALID_RECORD
        assert (await taken).offset == 0


async def test_a_topic_is_created_once(make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    with pytest.raises(TopicExistsError, match=f"create a topic on {topic} at .*: TOPIC_ALREADY_EXISTS"):
        await make_topic()


async def test_a_consumer_creates_no_topic(bootstrap: str) -> None:
    async with Consumer(bootstrap, default_api_timeout_ms=300) as consumer:
        for _ in range(2):
            with pytest.raises(
                UnknownTopicError, match=r"find a topic on no-such-topic at .*: UNKNOWN_TOPIC_OR_PARTITION"
            ):
                await consumer.partitions_for("no-such-topic")


class CuttingNetwork(TcpNetwork):
    """The real network, whose connections the test can cut."""

    def __init__(self) -> None:
        super().__init__()
        self.transports: list[asyncio.WriteTransport] = []

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        transport = await super().connect(address, protocol)
        self.transports.append(transport)
        return transport

    def cut(self) -> None:
        for transport in self.transports:
            transport.abort()
        self.transports.clear()


async def test_cut_connections_lose_and_duplicate_no_record(bootstrap: str, topic: str) -> None:
    network = CuttingNetwork()
    async with Producer(
        bootstrap, network=network, batch_size=500, retry_backoff_ms=1, reconnect_backoff_ms=1
    ) as producer:
        sent = []
        for number in range(5000):
            sent.append(await producer.send(topic, b"%d" % number, partition=number % 3))
            if number % 250 == 125:
                network.cut()
        metadata = await asyncio.gather(*sent)
    found = await read_all(bootstrap, topic)
    for partition in range(3):
        assert values(found[partition]) == [b"%d" % number for number in range(partition, 5000, 3)]
    assert sum(at.offset < 0 for at in metadata) == 0


async def test_cut_connections_do_not_change_the_records_that_are_read(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(5000):
            await producer.send(topic, b"%d" % number, partition=number % 3)
    network = CuttingNetwork()
    async with Consumer(
        bootstrap,
        network=network,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2000,
        retry_backoff_ms=1,
        reconnect_backoff_ms=1,
    ) as consumer:
        consumer.assign(await consumer.partitions_for(topic))
        found: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}
        for number in range(5000):
            record = await anext(consumer)
            found[record.partition].append(record.value)
            if number % 250 == 125:
                network.cut()
    for partition in range(3):
        assert found[partition] == [b"%d" % number for number in range(partition, 5000, 3)]
