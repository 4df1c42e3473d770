"""The client that comes with Odradek, tested with Apache Kafka as the others are tested with Odradek."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from odradek.client import Consumer, Producer, TopicPartition
from tests.peers.clients import BEGINNING, Incoming, Outgoing, Start, nothing

TIMEOUT = 30.0


class Bundled:
    name = "bundled"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Outgoing],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        settings: dict[str, Any] = {"acks": acks if acks == "all" else int(acks), "compression_type": codec}

        async def send() -> list[int]:
            async with Producer(bootstrap, enable_idempotence=idempotent, **settings) as producer:
                futures = [
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=partition,
                        headers=record.headers,
                        timestamp=record.timestamp,
                    )
                    for record in records
                ]
                written = [await asyncio.wait_for(future, TIMEOUT) for future in futures]
            return [] if acks == "0" else [metadata.offset for metadata in written]

        return asyncio.run(send())

    def consume(
        self,
        bootstrap: str,
        topic: str,
        *,
        count: int,
        partition: int = 0,
        start: Start = BEGINNING,
        once_positioned: Callable[[], None] = nothing,
    ) -> list[Incoming]:
        async def read() -> list[Incoming]:
            async with Consumer(bootstrap) as consumer:
                assigned = TopicPartition(topic, partition)
                consumer.assign([assigned])
                await _seek(consumer, assigned, start)
                await asyncio.to_thread(once_positioned)
                records = [await asyncio.wait_for(anext(consumer), TIMEOUT) for _ in range(count)]
            return [Incoming(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in records]

        return asyncio.run(read())

    def offsets(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            async with Consumer(bootstrap) as consumer:
                wanted = TopicPartition(topic, partition)
                first, after_last = await consumer.beginning_offsets([wanted]), await consumer.end_offsets([wanted])
            return first[wanted], after_last[wanted]

        return asyncio.run(ask())

    def offset_for_time(self, bootstrap: str, topic: str, timestamp: int, partition: int = 0) -> int | None:
        async def ask() -> int | None:
            async with Consumer(bootstrap) as consumer:
                wanted = TopicPartition(topic, partition)
                found = (await consumer.offsets_for_times({wanted: timestamp}))[wanted]
            return None if found is None else found.offset

        return asyncio.run(ask())


async def _seek(consumer: Consumer, partition: TopicPartition, start: Start) -> None:
    if start.kind == "beginning":
        await consumer.seek_to_beginning(partition)
    elif start.kind == "end":
        await consumer.seek_to_end(partition)
        await consumer.position(partition)
    elif start.kind == "offset":
        consumer.seek(partition, start.value)
    else:
        await consumer.seek_to_timestamp(start.value, partition)
