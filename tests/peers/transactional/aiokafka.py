"""aiokafka: asyncio, the first version of the protocol; it commits offsets without the group's generation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from tests.peers.transactional import TIMEOUT, FencedError, Member, Read, TransactionError


class Aiokafka:
    name = "aiokafka"

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> AiokafkaProducer:
        return AiokafkaProducer(bootstrap, transactional_id, timeout_ms)

    def member(self, bootstrap: str, group: str, topic: str) -> AiokafkaMember:
        return AiokafkaMember(bootstrap, group, topic)

    def committed(self, bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
        async def read() -> list[bytes]:
            consumer = _consumer(bootstrap, None)
            await consumer.start()
            try:
                assigned = TopicPartition(topic, partition)
                consumer.assign([assigned])
                await consumer.seek_to_beginning(assigned)
                end = (await consumer.end_offsets([assigned]))[assigned]
                found: list[bytes] = []
                while await consumer.position(assigned) < end:
                    found += [row.value for rows in (await consumer.getmany(timeout_ms=100)).values() for row in rows]
            finally:
                await consumer.stop()
            return found

        return asyncio.run(read())


class _Loop:
    """An event loop for one client, which runs while a call waits."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self._runner.run(asyncio.wait_for(work, TIMEOUT))
        except (ProducerFenced, InvalidProducerEpoch) as error:
            raise FencedError from error
        except (KafkaError, TimeoutError) as error:
            raise TransactionError from error

    def close(self) -> None:
        self._runner.close()


class AiokafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = _Loop()
        self._loop.wait(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            retry_backoff_ms=20,
        )
        await self._producer.start()

    def begin(self) -> None:
        self._loop.wait(self._producer.begin_transaction())

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        async def send() -> None:
            for future in [await self._producer.send(topic, value, partition=partition) for value in values]:
                await future

        self._loop.wait(send())

    def send_offsets(self, member: Member, offsets: Mapping[tuple[str, int], int]) -> None:
        assert isinstance(member, AiokafkaMember)
        rows = {TopicPartition(*partition): offset for partition, offset in offsets.items()}
        self._loop.wait(self._producer.send_offsets_to_transaction(rows, member.group))

    def commit(self) -> None:
        self._loop.wait(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.wait(self._producer.abort_transaction())

    def close(self) -> None:
        self._loop.wait(self._producer.stop())
        self._loop.close()


class AiokafkaMember:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._loop = _Loop()
        self.group = group
        self._loop.wait(self._start(bootstrap, topic))

    async def _start(self, bootstrap: str, topic: str) -> None:
        self._consumer = _consumer(bootstrap, self.group)
        self._consumer.subscribe([topic])
        await self._consumer.start()

    def read(self, count: int) -> list[Read]:
        async def read() -> list[Read]:
            records = [await self._consumer.getone() for _ in range(count)]
            return [Read(record.offset, record.value) for record in records]

        found: list[Read] = self._loop.wait(read())
        return found

    def close(self) -> None:
        self._loop.wait(self._consumer.stop())
        self._loop.close()


def _consumer(bootstrap: str, group: str | None) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
