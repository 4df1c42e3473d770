"""Faults for librdkafka, which runs on threads beside the broker's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.testing.faults import BlockingFaults
from odradek.broker.testing.threaded import ThreadedBroker


@pytest.fixture
def thread() -> Iterator[ThreadedBroker]:
    with ThreadedBroker({"offsets.topic.num.partitions": "1"}) as running:
        yield running


@pytest.fixture
def faults(thread: ThreadedBroker) -> Iterator[BlockingFaults]:
    made = BlockingFaults(thread)
    yield made
    made.clear()


def producer(thread: ThreadedBroker, **settings: Any) -> Producer:
    common = {"bootstrap.servers": thread.broker.bootstrap, "retry.backoff.ms": 1, "reconnect.backoff.ms": 1}
    return Producer({**common, **{name.replace("_", "."): value for name, value in settings.items()}})


def create(thread: ThreadedBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": thread.broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


def values(thread: ThreadedBroker, topic: str) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": thread.broker.bootstrap, "group.id": "unused"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    while len(found) < end:
        found += [message.value() for message in consumer.consume(end, 1) if not message.error()]
    consumer.close()
    return found


def test_a_producer_repeats_what_failed(thread: ThreadedBroker, faults: BlockingFaults) -> None:
    create(thread, "t")
    rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=0, times=2)
    sending = producer(thread)
    sending.produce("t", b"a")
    assert sending.flush(30) == 0
    assert rule.hits == 2
    assert values(thread, "t") == [b"a"]


def test_a_lost_answer_makes_no_duplicate_of_an_idempotent_producer(
    thread: ThreadedBroker, faults: BlockingFaults
) -> None:
    create(thread, "t")
    rule = faults.drop("Produce", when="after", topic="t", times=1)
    sending = producer(thread, enable_idempotence=True)
    sending.produce("t", b"a")
    assert sending.flush(30) == 0
    assert rule.hits == 1
    assert values(thread, "t") == [b"a"]


def test_a_lost_answer_makes_a_duplicate_of_any_other_producer(thread: ThreadedBroker, faults: BlockingFaults) -> None:
    create(thread, "t")
    rule = faults.drop("Produce", when="after", topic="t", times=1)
    sending = producer(thread, enable_idempotence=False)
    sending.produce("t", b"a")
    assert sending.flush(30) == 0
    assert rule.hits == 1
    assert values(thread, "t") == [b"a", b"a"]


def test_a_consumer_goes_on_after_a_failed_fetch(thread: ThreadedBroker, faults: BlockingFaults) -> None:
    create(thread, "t")
    sending = producer(thread)
    sending.produce("t", b"a")
    assert sending.flush(30) == 0
    rule = faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="t", times=1)
    assert values(thread, "t") == [b"a"]
    assert rule.hits == 1


def test_a_failed_commit_is_the_error_of_its_caller(thread: ThreadedBroker, faults: BlockingFaults) -> None:
    create(thread, "t")
    rule = faults.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", topic="t", partition=0)
    consumer = Consumer({"bootstrap.servers": thread.broker.bootstrap, "group.id": "g"})
    with pytest.raises(KafkaException) as failed:
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    assert failed.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert rule.hits


def test_a_pause_holds_a_producer_back(thread: ThreadedBroker, faults: BlockingFaults) -> None:
    create(thread, "t")
    sending = producer(thread)
    with faults.pause("Produce") as rule:
        sending.produce("t", b"a")
        while not rule.hits:
            assert sending.poll(0.01) == 0
    assert sending.flush(30) == 0
    assert faults.rules == []


def test_all_methods_of_faults_are_there(thread: ThreadedBroker, faults: BlockingFaults) -> None:
    made = [
        faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER"),
        faults.delay("Fetch", 1),
        faults.drop("Fetch"),
        faults.throttle("Fetch", 1),
        faults.disk_full(1 << 40),
        faults.io_error(nth=1 << 40),
        faults.slow_disk(0, path="none"),
    ]
    optional = faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", optional=True)
    assert optional.optional
    assert [str(rule) for rule in faults.rules] == [str(rule) for rule in [*made, optional]]
    assert [repr(rule) for rule in faults.unused()] == [repr(rule) for rule in made]
    with pytest.raises(ValueError, match="did you mean Fetch"):
        faults.drop("Fech")
    made[0].remove()
    assert len(faults.rules) == len(made)


def test_a_rule_outlives_a_restart(tmp_path: Path) -> None:
    with ThreadedBroker({"log.dirs": str(tmp_path)}) as thread:
        faults = BlockingFaults(thread)
        create(thread, "t")
        rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", times=1)
        thread.stop()
        removed = faults.disk_full(0)
        removed.remove()
        thread.start()

        sending = producer(thread)
        sending.produce("t", b"a")
        assert sending.flush(30) == 0
        assert rule.hits == 1
        assert values(thread, "t") == [b"a"]
        thread.stop()
        faults.clear()


def test_a_full_disk_is_an_error_of_the_producer(tmp_path: Path) -> None:
    with ThreadedBroker({"log.dirs": str(tmp_path)}) as thread:
        create(thread, "t")
        faults = BlockingFaults(thread)
        rule = faults.disk_full(after=0, path="t-0")
        errors: list[KafkaError | None] = []
        sending = producer(thread, message_send_max_retries=1)
        sending.produce("t", b"a", on_delivery=lambda error, _: errors.append(error))
        sending.flush(30)
        assert rule.hits == 1
        [error] = errors
        assert error is not None
        rule.remove()
        thread.stop()
        thread.start()
        sending = producer(thread)
        sending.produce("t", b"b")
        assert sending.flush(30) == 0
        assert values(thread, "t") == [b"b"]
