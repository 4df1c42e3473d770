"""aiokafka: asyncio, pure Python with its own codec; never sends a flexible version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.peers.clients import BEGINNING, Incoming, Outgoing, Start, nothing

TIMEOUT = 30.0


class Aiokafka:
    name = "aiokafka"

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
        async def send() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=5,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=partition,
                        timestamp_ms=record.timestamp,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                acknowledged = [await asyncio.wait_for(future, TIMEOUT) for future in futures]
            finally:
                await producer.stop()
            return [metadata.offset for metadata in acknowledged if metadata is not None]

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
            async with _consumer(bootstrap) as consumer:
                assigned = TopicPartition(topic, partition)
                consumer.assign([assigned])
                await _seek(consumer, assigned, start)
                await asyncio.to_thread(once_positioned)
                records = [await asyncio.wait_for(consumer.getone(), TIMEOUT) for _ in range(count)]
            return [Incoming(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in records]

        return asyncio.run(read())

    def offsets(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            async with _consumer(bootstrap) as consumer:
                wanted = TopicPartition(topic, partition)
                first, after_last = await consumer.beginning_offsets([wanted]), await consumer.end_offsets([wanted])
            return first[wanted], after_last[wanted]

        return asyncio.run(ask())

    def offset_for_time(self, bootstrap: str, topic: str, timestamp: int, partition: int = 0) -> int | None:
        async def ask() -> int | None:
            async with _consumer(bootstrap) as consumer:
                wanted = TopicPartition(topic, partition)
                found = (await consumer.offsets_for_times({wanted: timestamp}))[wanted]
            return None if found is None else found.offset

        return asyncio.run(ask())


@asynccontextmanager
async def _consumer(bootstrap: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def _seek(consumer: AIOKafkaConsumer, partition: TopicPartition, start: Start) -> None:
    if start.kind == "beginning":
        await consumer.seek_to_beginning(partition)
    elif start.kind == "end":
        await consumer.seek_to_end(partition)
    elif start.kind == "offset":
        consumer.seek(partition, start.value)
    else:
        found = await consumer.offsets_for_times({partition: start.value})
        consumer.seek(partition, found[partition].offset)
