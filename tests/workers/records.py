"""Records of a topic, written and read by the bundled client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odradek.client import Admin, Consumer, NewTopic, Producer, TopicPartition


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    """Create a topic; return when it can be used."""

    async def ask() -> None:
        async with Admin(bootstrap) as admin:
            (await admin.create_topics([NewTopic(topic, partitions)])).values_or_raise()

    asyncio.run(ask())


def produce(bootstrap: str, topic: str, *values: bytes, partition: int | None = None) -> None:
    """Write the values; return when they are acknowledged."""

    async def write() -> None:
        async with Producer(bootstrap) as producer:
            for value in values:
                await producer.send_and_wait(topic, value, partition=partition)

    asyncio.run(write())


def read(bootstrap: str, topic: str, partitions: Sequence[int] = (0,)) -> list[bytes]:
    """Return the values of all records, in the order of partitions and offsets."""

    async def fetch() -> list[bytes]:
        async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            each = [TopicPartition(topic, partition) for partition in partitions]
            consumer.assign(each)
            ends = await consumer.end_offsets(each)
            found: dict[TopicPartition, list[bytes]] = {partition: [] for partition in each}
            while any(len(found[partition]) < ends[partition] for partition in each):
                for record in await consumer.poll():
                    found[TopicPartition(record.topic, record.partition)].append(record.value or b"")
            return [value for partition in each for value in found[partition]]

    return asyncio.run(fetch())
