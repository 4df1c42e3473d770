from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, Producer

from odradek.broker.clock import SystemClock
from odradek.broker.testing.blocking_clock import BlockingClock
from odradek.broker.testing.threaded import ThreadedBroker

PROPERTIES = {"offsets.topic.num.partitions": "1"}


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker(PROPERTIES) as broker:
        yield broker


def consumer_of(broker: ThreadedBroker, protocol: str, client_id: str = "app") -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "client.id": client_id,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["t"])
    return consumer


def produce(broker: ThreadedBroker, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("t", value)
    assert producer.flush(30) == 0


def next_value(consumer: Consumer) -> bytes | None:
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is None:
            return message.value()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_living_consumer_keeps_its_partitions_while_days_pass(broker: ThreadedBroker, protocol: str) -> None:
    produce(broker, b"before")
    consumer = consumer_of(broker, protocol)
    assert next_value(consumer) == b"before"
    assigned, before = consumer.assignment(), BlockingClock(broker).time_ms()

    BlockingClock(broker).advance(days=2)
    BlockingClock(broker).advance(timedelta(hours=1))

    produce(broker, b"after")
    assert next_value(consumer) == b"after"
    assert consumer.assignment() == assigned
    assert BlockingClock(broker).time_ms() - before >= 49 * 3_600_000
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_expired_member_loses_its_partitions(broker: ThreadedBroker, protocol: str) -> None:
    produce(broker, b"a")
    consumer = consumer_of(broker, protocol)
    assert next_value(consumer) == b"a"

    BlockingClock(broker).expire_member("g", "app")

    [group] = [group for shard in broker.broker.services.groups.shards() for group in shard.groups.values()]
    assert group.is_empty
    consumer.close()


def test_an_unknown_group_or_client_is_refused_with_those_that_exist(broker: ThreadedBroker) -> None:
    clock = BlockingClock(broker)
    with pytest.raises(ValueError, match="no group 'g'; its groups are none"):
        clock.expire_member("g", "app")
    produce(broker, b"a")
    consumer = consumer_of(broker, "classic")
    next_value(consumer)

    with pytest.raises(ValueError, match="no group 'h'; its groups are 'g'"):
        clock.expire_member("h", "app")
    with pytest.raises(ValueError, match="no member with the client id 'other'; its members are 'app'"):
        clock.expire_member("g", "other")
    consumer.close()


def test_time_does_not_run_backwards(broker: ThreadedBroker) -> None:
    with pytest.raises(ValueError, match="backwards"):
        BlockingClock(broker).advance(hours=-1)


def test_only_a_clock_that_can_be_moved_is_accepted() -> None:
    with ThreadedBroker(PROPERTIES, clock=SystemClock()) as broker, pytest.raises(TypeError, match="SystemClock"):
        BlockingClock(broker)
