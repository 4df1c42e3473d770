"""The rules for records and requests: refused, replaced and unchanged ones, as in Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.peers import java
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.clients.kafka_python import KafkaPython
from tests.peers.server import Server
from tests.wire import Wire

TIMEOUT = 30
MakeTopic = Callable[..., str]


def answer_to(bootstrap: str, topic: str, settings: dict[str, Any] | None = None, **record: Any) -> KafkaError | int:
    """Produce one record; return the error or its offset."""
    answers: list[KafkaError | int | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        answers.append(error or message.offset())

    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 10_000_000} | (settings or {}))
    producer.produce(topic, on_delivery=delivered, **({"partition": 0} | record))
    producer.flush(TIMEOUT)
    [answer] = answers
    assert answer is not None
    return answer


def code_of(answer: KafkaError | int) -> int:
    assert isinstance(answer, KafkaError), f"written at offset {answer}"
    return answer.code()


def test_a_batch_larger_than_the_topic_allows_is_refused(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=10_000)
    assert code_of(answer_to(bootstrap, topic, value=bytes(10_000))) == KafkaError.MSG_SIZE_TOO_LARGE
    assert answer_to(bootstrap, topic, value=bytes(9_000)) == 0


def test_the_brokers_own_limit_is_a_mebibyte_and_a_header(bootstrap: str, topic: str) -> None:
    assert code_of(answer_to(bootstrap, topic, value=bytes(1_048_588))) == KafkaError.MSG_SIZE_TOO_LARGE
    assert answer_to(bootstrap, topic, value=bytes(1_048_000)) == 0


def test_compacted_topics_refuse_records_without_a_key(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="compact")
    assert code_of(answer_to(bootstrap, topic, value=b"v")) == KafkaError.INVALID_RECORD
    assert answer_to(bootstrap, topic, key=b"k", value=b"v") == 0
    assert answer_to(bootstrap, topic, key=b"k", value=None) == 1


def test_timestamps_too_far_from_the_brokers_clock_are_refused(bootstrap: str, make_topic: MakeTopic) -> None:
    now = int(time.time() * 1000)
    topic = make_topic(message_timestamp_before_max_ms=60_000, message_timestamp_after_max_ms=60_000)
    for far in (now - 120_000, now + 120_000):
        assert code_of(answer_to(bootstrap, topic, value=b"v", timestamp=far)) == KafkaError.INVALID_TIMESTAMP
    assert answer_to(bootstrap, topic, value=b"v", timestamp=now - 30_000) == 0


def test_min_insync_replicas_is_limited_by_the_replicas(bootstrap: str, make_topic: MakeTopic) -> None:
    """Since 4.0 min.insync.replicas is limited by the number of replicas, so acks=all succeeds."""
    assert answer_to(bootstrap, make_topic(min_insync_replicas=3), {"acks": "all"}, value=b"v") == 0


def test_a_missing_partition_is_unknown(bootstrap: str, topic: str) -> None:
    settings = {"message.timeout.ms": 3_000, "topic.metadata.propagation.max.ms": 100}
    answer = answer_to(bootstrap, topic, settings, value=b"v", partition=7)
    assert code_of(answer) == KafkaError._UNKNOWN_PARTITION  # noqa: SLF001


@pytest.mark.java
@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topics_codec_replaces_the_producers(
    codec: str, server: Server, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(compression_type=codec)
    sent = [Outgoing(b"key", b"compressible " * 30, (("h", b"v"),), 1_700_000_000_000 + i) for i in range(50)]
    for producers in ("none", "gzip", "snappy", "lz4", "zstd"):
        Confluent().produce(bootstrap, topic, sent, codec=producers, idempotent=True)
    received = KafkaPython().consume(bootstrap, topic, count=250)
    assert [record.value for record in received] == [record.value for record in sent] * 5
    assert [record.timestamp for record in received] == [record.timestamp for record in sent] * 5
    log = server.log_dir / f"{topic}-0" / f"{0:020}.log"
    dumped = java.run(java.DUMP_LOG_SEGMENTS, "--files", str(log)).stdout
    batches = [line for line in dumped.splitlines() if line.startswith("baseOffset: ")]
    stored = "none" if codec == "uncompressed" else codec
    assert batches
    assert [line for line in batches if f"compresscodec: {stored} " not in line or "isvalid: true" not in line] == []


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    base = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    return Consumer(base | {name.replace("_", "."): value for name, value in settings.items()})


def test_an_offset_beyond_the_end_is_out_of_range(bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Outgoing(None, b"v")] * 5)
    reader = consumer(bootstrap, auto_offset_reset="error")
    reader.assign([TopicPartition(topic, 0, 99)])
    message = reader.poll(TIMEOUT)
    reader.close()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
    assert "Offset out of range" in error.str()


def test_the_end_of_a_partition_is_its_high_watermark(bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Outgoing(None, b"v")] * 5)
    reader = consumer(bootstrap, enable_partition_eof=True)
    reader.assign([TopicPartition(topic, 0, 5)])
    message = reader.poll(TIMEOUT)
    cached = reader.get_watermark_offsets(TopicPartition(topic, 0), cached=True)
    reader.close()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001
    assert cached[1] == 5


async def test_a_metadata_request_creates_a_topic_only_if_it_allows_it(server: Server, topic_name: str) -> None:
    async with Wire(server.host, server.port) as wire:

        async def answer(wanted: bool) -> int:
            metadata_request = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic_name)], allow_auto_topic_creation=wanted
            )
            code: int = (await wire.ask(metadata_request, 9)).topics[0].error_code
            return code

        assert await answer(wanted=False) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await answer(wanted=False) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for _ in range(5_000):  # Apache Kafka creates it in the background
            if await answer(wanted=True) == ErrorCode.NONE:
                break
        assert await answer(wanted=False) == ErrorCode.NONE


def test_a_topic_with_an_illegal_name_is_not_created_by_a_producer(admin: AdminClient, bootstrap: str) -> None:
    name = "no/such name"
    answer = answer_to(bootstrap, name, {"message.timeout.ms": 5_000}, value=b"v")
    assert code_of(answer) in (KafkaError.TOPIC_EXCEPTION, KafkaError._MSG_TIMED_OUT)  # noqa: SLF001
    assert name not in admin.list_topics(timeout=TIMEOUT).topics


def test_a_fetch_ends_at_the_limits_of_the_consumer(bootstrap: str, topic: str) -> None:
    """But a batch that is larger than all limits is delivered: otherwise the consumer could never pass it (KIP-74)."""
    for _ in range(4):
        Confluent().produce(bootstrap, topic, [Outgoing(None, bytes(200_000))])
    reader = consumer(
        bootstrap,
        fetch_message_max_bytes=1_000,
        fetch_max_bytes=1_000,
        message_max_bytes=1_000,
        isolation_level="read_uncommitted",
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    messages = reader.consume(4, TIMEOUT)
    reader.close()
    assert [message.offset() for message in messages] == [0, 1, 2, 3]


async def test_a_missing_partition_does_not_end_the_wait_of_a_fetch(server: Server, topic: str) -> None:
    """Otherwise a consumer of one partition and a deleted one would poll without a pause."""
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v")])
    good, missing = FetchPartition(partition=0, fetch_offset=1), FetchPartition(partition=7)
    request = FetchRequest(max_wait_ms=700, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[good, missing])])
    async with Wire(server.host, server.port) as wire:
        began = time.monotonic()
        answer = await wire.ask(request, 12)
        assert time.monotonic() - began > 0.6
        codes = {row.partition_index: row.error_code for row in answer.responses[0].partitions}
        assert codes == {0: ErrorCode.NONE, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

        request.topics[0].partitions = [missing]
        request.max_wait_ms = 600_000  # far above the timeouts of the clients here
        await wire.ask(request, 12)


def test_a_recreated_topic_starts_empty(admin: AdminClient, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Outgoing(None, b"before")] * 5)
    admin.delete_topics([topic])[topic].result(TIMEOUT)
    while topic in admin.list_topics(timeout=TIMEOUT).topics:
        continue  # Apache Kafka responds to the deletion some milliseconds before it is visible
    assert Confluent().produce(bootstrap, topic, [Outgoing(None, b"after")]) == [0]
    assert [record.value for record in Confluent().consume(bootstrap, topic, count=1)] == [b"after"]
