"""A user's program, for the type checker only; `user_mistakes.py` has the errors that it must find."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import assert_type

from odradek.client import (
    Admin,
    ClientError,
    CommittedOffset,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    Consumer,
    ConsumerRecord,
    NewTopic,
    OffsetAndTimestamp,
    OffsetSpec,
    Producer,
    RebalanceListener,
    RecordMetadata,
    Results,
    TopicDescription,
    TopicPartition,
)


def by_length(topic: str, key: bytes | None, value: bytes | None, partitions: int, led: Sequence[int]) -> int:
    return len(value or b"") % partitions


async def produce() -> None:
    async with Producer("localhost:9092", compression_type="zstd", partitioner=by_length, client_id="me") as producer:
        sent = await producer.send("t", b"value", key=b"key", headers=[("a", None)], timestamp=1)
        assert_type(sent, asyncio.Future[RecordMetadata])
        assert_type((await sent).offset, int)
        await producer.flush()


def encode(fields: dict[str, int]) -> bytes:
    return repr(fields).encode()


async def produce_serialized() -> None:
    async with Producer("localhost:9092", value_serializer=encode) as producer:
        assert_type(producer, Producer[bytes, dict[str, int]])
        assert_type(await producer.send_and_wait("t", {"a": 1}, key=b"key"), RecordMetadata)
    async with Producer[str, bytes]("localhost:9092", key_serializer=lambda key: key.encode()) as with_keys:
        await with_keys.send("t", b"value", key="key")


class Listener(RebalanceListener):
    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        assert_type(partitions, Sequence[TopicPartition])


async def consume() -> None:
    async with Consumer(
        ["a:1", "b:2"], group_id="g", auto_offset_reset="earliest", request_timeout_ms=5000
    ) as consumer:
        await consumer.subscribe(re.compile("t.*"), Listener())
        async for record in consumer:
            assert_type(record, ConsumerRecord)
            assert_type(record.value, bytes | None)
            break
        assert_type(await consumer.poll(timeout_ms=100), list[ConsumerRecord])
        await consumer.commit({("t", 0): 7, ("t", 1): CommittedOffset(8, metadata="x")})
        by_partition = {TopicPartition("t", 0): 1}
        assert_type(await consumer.offsets_for_times(by_partition), dict[TopicPartition, OffsetAndTimestamp | None])
        assert_type(consumer.lag(("t", 0)), int | None)


async def administer() -> None:
    async with Admin("localhost:9092") as admin:
        await admin.create_topics([NewTopic("t", 3, configs={"retention.ms": "1"})])
        described = await admin.describe_topics(["t"])
        assert_type(described, Results[str, TopicDescription])
        outcome = described["t"]
        if isinstance(outcome, ClientError):
            assert_type(outcome.retriable, bool)
        else:
            assert_type(outcome.partitions[0].leader, int | None)
        topic = ConfigResource.topic("t")
        configs = await admin.describe_configs([topic], names=["retention.ms"])
        assert_type(configs.value(topic), dict[str, ConfigEntry])
        await admin.alter_configs({topic: [ConfigChange("retention.ms", operation=ConfigOperation.DELETE)]})
        ends = await admin.list_offsets(places={("t", 0): OffsetSpec.LATEST})
        assert_type(ends.value(TopicPartition("t", 0)).offset, int)
