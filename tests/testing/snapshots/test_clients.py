"""Clients that others wrote, living across a restore."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.broker import Broker
from odradek.broker.testing.snapshots import Snapshots
from tests.handlers.requests import create
from tests.wire import Wire

CONNECTS_AT_ONCE = {"metadata.recovery.strategy": "none", "reconnect.backoff.ms": 0, "reconnect.backoff.max.ms": 0}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker({"offsets.topic.num.partitions": "3"}) as started, Wire("127.0.0.1", started.port) as wire:
        await create(wire, "t")
        yield started


def produce(producer: Producer, *values: bytes) -> None:
    failed: list[Any] = []
    for value in values:
        producer.produce("t", value, partition=0, on_delivery=lambda error, _: failed.extend([error] if error else []))
    assert producer.flush(30) == 0
    assert failed == []


@pytest.fixture
def consumer(broker: Broker) -> Iterator[Consumer]:
    made = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    yield made
    made.close()


def values(consumer: Consumer, count: int) -> list[bytes | None]:
    """The first `count` values of the topic."""
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes | None] = []
    while len(found) < count:
        found += [message.value() for message in consumer.consume(count, 1) if not message.error()]
    return found


async def test_an_idempotent_producer_of_librdkafka(broker: Broker, consumer: Consumer) -> None:
    config = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0}
    producer = Producer({**config, **CONNECTS_AT_ONCE})
    snapshots = Snapshots(broker)
    await asyncio.to_thread(produce, producer, b"a", b"b")
    state = await snapshots.snapshot()
    for turn in (b"1", b"2"):
        await asyncio.to_thread(produce, producer, b"c" + turn)
        await snapshots.restore(state)
        await asyncio.to_thread(produce, producer, b"d" + turn)
        assert await asyncio.to_thread(values, consumer, 3) == [b"a", b"b", b"d" + turn]
        await snapshots.restore(state)


async def test_restores_while_librdkafka_produces(broker: Broker, consumer: Consumer) -> None:
    """What was acknowledged after the last restore is there, in order, and nothing is there twice."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 1})
    snapshots = Snapshots(broker)
    state = await snapshots.snapshot()
    log = broker.services.partitions.get("t", 0).log
    numbers = [b"%06d" % number for number in range(3_000)]
    producing = asyncio.create_task(asyncio.to_thread(produce, producer, *numbers))
    restores = 0
    while not producing.done():
        if broker.services.partitions.get("t", 0).log.log_end_offset > 100 and restores < 5:
            await snapshots.restore(state)
            restores += 1
        await asyncio.sleep(0)
    await producing

    left = broker.services.partitions.get("t", 0).log.log_end_offset
    assert log is broker.services.partitions.get("t", 0).log
    kept = await asyncio.to_thread(values, consumer, left)
    assert kept == numbers[len(numbers) - left :]


@pytest.mark.usefixtures("ordinary_tasks")
async def test_a_group_member_of_aiokafka_reads_on(broker: Broker) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
    consumer = AIOKafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False
    )
    await producer.start()
    await consumer.start()
    try:
        await producer.send_and_wait("t", b"a")
        assert (await consumer.getone()).value == b"a"
        await consumer.commit()
        snapshots = Snapshots(broker)
        state = await snapshots.snapshot()
        for turn in (b"1", b"2"):
            await producer.send_and_wait("t", b"b" + turn)
            assert (await consumer.getone()).value == b"b" + turn
            await consumer.commit()

            await snapshots.restore(state)

            assert await consumer.committed(next(iter(consumer.assignment()))) == 1
            await consumer.seek_to_committed()
            await producer.send_and_wait("t", b"c" + turn)
            assert (await consumer.getone()).value == b"c" + turn
            await snapshots.restore(state)
            await consumer.seek_to_committed()
    finally:
        await consumer.stop()
        await producer.stop()
