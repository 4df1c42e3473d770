"""What a test may do to its broker through the handle: `tests/testing/…` has the details of each part."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, Producer

from odradek.testing.kafka import Kafka
from odradek.testing.session import Session


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session.open({"log.retention.hours": 1}, None)
    yield session
    session.close()


@pytest.fixture
def kafka(session: Session) -> Iterator[Kafka]:
    with session.isolate() as handle:
        yield handle


def values(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic)]


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_a_broker_that_was_stopped_or_killed_starts_again_with_port_and_data(kafka: Kafka, ends: str) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"a"])
    bootstrap = kafka.bootstrap

    getattr(kafka, ends)()
    kafka.start()
    kafka.restart()

    assert kafka.bootstrap == bootstrap
    assert values(kafka, "orders") == [b"a"]


@pytest.mark.parametrize("left", ["running", "stopped", "killed", "failed", "moved"])
def test_the_next_test_finds_the_state_of_the_beginning_however_the_broker_was_left(
    session: Session, left: str
) -> None:
    with session.isolate() as kafka:
        kafka.topic("orders")
        kafka.produce("orders", [b"a"])
        if left == "stopped":
            kafka.stop()
        elif left == "killed":
            kafka.kill()
        elif left == "failed":
            kafka.faults.io_error(path="orders-0")
            with pytest.raises(Exception, match=r"KAFKA_STORAGE_ERROR|NOT_LEADER"):
                kafka.produce("orders", [b"b"])
        elif left == "moved":
            kafka.clock.advance(hours=30)
    with session.isolate() as kafka:
        assert kafka.describe().startswith("no topics and no groups")
        assert not kafka.aio.own.clock.was_moved
        assert kafka.faults.rules == []


def test_a_snapshot_is_restored_as_often_as_wanted_also_after_a_stop(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"a"])
    first = kafka.snapshot()
    kafka.produce("orders", [b"b"])
    second = kafka.snapshot()

    for state, expected in ((first, [b"a"]), (second, [b"a", b"b"]), (first, [b"a"])):
        kafka.restore(state)
        assert values(kafka, "orders") == expected
    kafka.stop()
    kafka.restore(second)
    assert values(kafka, "orders") == [b"a", b"b"]


def test_a_snapshot_ends_with_its_test(session: Session) -> None:
    with session.isolate() as kafka:
        state = kafka.snapshot()
    with session.isolate() as kafka, pytest.raises(ValueError, match="discarded"):
        kafka.restore(state)


def test_the_clock_drives_retention_and_silent_members(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [b"a"])
    before = kafka.clock.time_ms()

    kafka.clock.advance(timedelta(hours=2))

    assert kafka.clock.time_ms() >= before + 7_200_000
    assert values(kafka, "orders") == []
    with pytest.raises(ValueError, match="backwards"):
        kafka.clock.advance(hours=-1)


def test_the_session_of_a_member_ends_on_demand(kafka: Kafka) -> None:
    kafka.topic("orders")
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "readers", "client.id": "shop"})
    lost: list[object] = []
    consumer.subscribe(["orders"], on_lost=lambda _, partitions: lost.extend(partitions))
    while not consumer.assignment():
        consumer.poll(0.05)
    kafka.wait_for_members("readers", 1)

    kafka.clock.expire_member("readers", "shop")
    while not lost:
        consumer.poll(0.05)
    consumer.close()

    with pytest.raises(ValueError, match="readers"):
        kafka.clock.expire_member("reader", "shop")


def test_a_fault_changes_what_a_client_sees(kafka: Kafka) -> None:
    kafka.topic("orders")
    rule = kafka.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 1})
    producer.produce("orders", b"a")
    assert producer.flush(30) == 0
    assert rule.hits == 2
    assert values(kafka, "orders") == [b"a"]
    assert "fail Produce" in kafka.describe()


def test_the_trace_has_what_the_broker_did_since_the_beginning_of_the_test(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [(b"key", b"three socks")])
    text = str(kafka.trace)
    assert "three socks" in text
    assert "orders-0/00000000000000000000.log" in text
    assert "Produce" in {exchange.api for exchange in kafka.trace.requests(100)}
    kafka.restart()
    kafka.produce("orders", [b"four hats"])
    assert "four hats" in str(kafka.trace)


async def test_the_twins_are_awaited_and_the_others_name_them(session: Session) -> None:
    import asyncio

    def begin() -> Kafka:
        return context.__enter__()

    context = session.isolate()
    kafka = await asyncio.to_thread(begin)
    try:
        await kafka.aio.topic("orders")
        state = await kafka.aio.snapshot()
        await kafka.aio.produce("orders", [b"a"])
        await kafka.aio.restart()
        await kafka.aio.kill()
        await kafka.aio.start()
        await kafka.aio.stop()
        await kafka.aio.restore(state)
        await kafka.aio.clock.advance(minutes=1)
        assert await kafka.aio.records("orders") == []
        for name in ("stop", "start", "restart", "kill", "snapshot"):
            with pytest.raises(RuntimeError, match=rf"await kafka\.aio\.{name}\("):
                getattr(kafka, name)()
        with pytest.raises(RuntimeError, match=r"await kafka\.aio\.clock\.advance"):
            kafka.clock.advance(hours=1)
        with pytest.raises(RuntimeError, match=r"await kafka\.aio\.restore"):
            kafka.restore(state)
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)
