"""A broker beside a test whose time stands still: freezegun, time-machine.

Clients in C do not notice. A client in Python has the time of the test: under freezegun, which also freezes the
monotonic clock, its timers stand still, unless freezegun is told to ignore it (`ignore=["kafka"]`), and so do those of
an event loop of asyncio (`real_asyncio=True`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import kafka
import pytest
import time_machine
from confluent_kafka import Consumer, Producer
from freezegun import freeze_time

import odradek.client
from odradek.broker.testing.threaded import ThreadedBroker
from tests.handlers.requests import batch, create, fetch, produce, records_in
from tests.wire import Wire

PAST, FUTURE = "2001-02-03", "2100-01-01"
REAL_MS = 1_600_000_000_000
"""Before every run of this test, and after PAST."""
FAR_MS = 4_000_000_000_000
"""After every run of this test, and before FUTURE."""

Freeze = Callable[[str], AbstractContextManager[Any]]


def machine(when: str) -> AbstractContextManager[Any]:
    return time_machine.travel(when, tick=False)


@pytest.fixture(params=[freeze_time, machine], ids=["freezegun", "time-machine"])
def freeze(request: pytest.FixtureRequest) -> Freeze:
    frozen: Freeze = request.param
    return frozen


@contextmanager
def started_before(freeze: Freeze, when: str) -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as broker, freeze(when):
        yield broker


@contextmanager
def started_inside(freeze: Freeze, when: str) -> Iterator[ThreadedBroker]:
    with freeze(when), ThreadedBroker() as broker:
        yield broker


Running = Callable[[Freeze, str], AbstractContextManager[ThreadedBroker]]
order = pytest.mark.parametrize("running", [started_before, started_inside])
times = pytest.mark.parametrize("when", [PAST, FUTURE])


async def send_and_read(bootstrap: str) -> bytes | None:
    async with odradek.client.Producer(bootstrap) as producer:
        await producer.send("t", b"a")
    async with odradek.client.Consumer(bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        await consumer.subscribe("t")
        [record] = await consumer.poll()
    return record.value


@order
@times
def test_the_timers_of_the_broker_run(running: Running, when: str, freeze: Freeze) -> None:
    async def wait_for_records() -> int:
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "t")
            row = await fetch(wire, "t", max_wait_ms=20)
        return row.high_watermark

    with running(freeze, when) as broker:
        frozen_at = time.time()
        assert broker.run(wait_for_records()) == 0
        assert time.time() == frozen_at


@order
@times
def test_the_clock_of_the_broker_is_right(running: Running, when: str, freeze: Freeze) -> None:
    async def time_of_an_append() -> int:
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "t", message_timestamp_type="LogAppendTime")
            await produce(wire, "t", batch(b"a"))
            [record] = records_in(await fetch(wire, "t"))
        return record.timestamp

    with running(freeze, when) as broker:
        assert REAL_MS < broker.run(time_of_an_append()) < FAR_MS
        assert REAL_MS < broker.clock.time_ms() < FAR_MS


@order
@times
def test_confluent_kafka(running: Running, when: str, freeze: Freeze) -> None:
    with running(freeze, when) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", b"a", timestamp=int(time.time() * 1000))
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        message = consumer.poll(30)
        assert message is not None
        assert (message.value(), message.timestamp()[1]) == (b"a", int(time.time() * 1000))
        consumer.commit(message, asynchronous=False)
        consumer.close()


def without_kafka_python(when: str) -> AbstractContextManager[Any]:
    return freeze_time(when, ignore=["kafka"])


@order
@times
@pytest.mark.parametrize("freeze", [without_kafka_python, machine])
def test_kafka_python(running: Running, when: str, freeze: Freeze) -> None:
    with running(freeze, when) as broker:
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
        producer.send("t", b"a").get(30)
        producer.close()
        consumer = kafka.KafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
        )
        assert next(consumer).value == b"a"
        consumer.close()


@order
@times
def test_the_bundled_client_on_the_brokers_loop(running: Running, when: str, freeze: Freeze) -> None:
    with running(freeze, when) as broker:
        assert broker.run(send_and_read(broker.bootstrap)) == b"a"


def with_asyncio(when: str) -> AbstractContextManager[Any]:
    return freeze_time(when, real_asyncio=True)


@order
@times
@pytest.mark.parametrize("freeze", [with_asyncio, machine])
def test_the_bundled_client(running: Running, when: str, freeze: Freeze) -> None:
    with running(freeze, when) as broker:
        assert asyncio.run(send_and_read(broker.bootstrap)) == b"a"


def test_a_broker_restarts_while_time_stands_still(freeze: Freeze) -> None:
    with freeze(PAST), ThreadedBroker() as broker:
        broker.restart()
        broker.kill()
        broker.start()
