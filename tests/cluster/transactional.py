"""Transactional producers of several clients: each transaction writes one record to each partition."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from odradek import client as odradek_client
from tests.cluster.brokers import LIMIT, wait_until
from tests.cluster.writers import PARTITIONS


class TransactionalProducer(Protocol):
    """A producer of one topic, which is also its transactional id."""

    topic: str

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, value: bytes) -> None:
        """Begin a transaction and write to every partition; return when all is acknowledged."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class Librdkafka:
    """Speaks version 1 of the protocol of transactions."""

    def __init__(self, bootstrap: str, topic: str, transactional_id: str) -> None:
        self.topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0, "log_level": 0}
        )

    def __enter__(self) -> Self:
        self._producer.init_transactions(LIMIT)
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()
        self._producer.flush(LIMIT)

    def write(self, value: bytes) -> None:
        errors: list[KafkaError | None] = []
        self._producer.begin_transaction()
        for partition in range(PARTITIONS):
            self._producer.produce(
                self.topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
            )
        assert self._producer.flush(LIMIT) == 0
        assert errors == [None] * PARTITIONS

    def commit(self) -> None:
        while True:
            try:
                self._producer.commit_transaction(LIMIT)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def abort(self) -> None:
        self._producer.abort_transaction(LIMIT)


class Bundled:
    """The bundled client, which speaks version 2."""

    def __init__(self, bootstrap: str, topic: str, transactional_id: str) -> None:
        self.topic = topic
        self._bootstrap = bootstrap
        self._transactional_id = transactional_id
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.run(self._start())
        return self

    async def _start(self) -> None:
        self._producer = odradek_client.Producer(self._bootstrap, transactional_id=self._transactional_id, linger_ms=0)
        await self._producer.__aenter__()

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._producer.close())
        self._runner.close()

    def write(self, value: bytes) -> None:
        self._runner.run(self._write(value))

    async def _write(self, value: bytes) -> None:
        self._transaction = self._producer.transaction()
        await self._transaction.__aenter__()
        for partition in range(PARTITIONS):
            await self._producer.send_and_wait(self.topic, value, partition=partition)

    def commit(self) -> None:
        self._runner.run(self._transaction.commit())

    def abort(self) -> None:
        self._runner.run(self._transaction.abort())


def committed(bootstrap: str, topic: str) -> list[list[bytes]]:
    """Return the committed values of each partition, when no transaction is open there."""
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    partitions = [TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
    common = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "log_level": 0}
    every = Consumer({**common, "isolation.level": "read_uncommitted"})
    consumer = Consumer({**common, "isolation.level": "read_committed", "enable.partition.eof": True})
    try:
        wait_until(lambda: _ends(consumer, partitions) == _ends(every, partitions), lambda: f"the end of {topic}")
        consumer.assign(partitions)
        reached = 0
        while reached < PARTITIONS:
            message = consumer.poll(LIMIT)
            assert message is not None, f"{topic} cannot be read"
            if message.error() is None:
                value = message.value()
                assert value is not None
                found[message.partition() or 0].append(value)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()  # noqa: SLF001
                reached += 1
    finally:
        consumer.close()
        every.close()
    return found


def _ends(consumer: Consumer, partitions: list[TopicPartition]) -> list[int]:
    return [consumer.get_watermark_offsets(each, LIMIT)[1] for each in partitions]
