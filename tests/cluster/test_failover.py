"""Clients of a cluster of processes, while brokers die and return."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.brokers import Brokers, running
from tests.peers import etcd

pytestmark = etcd.MARKS

TOPIC = "t"
PARTITIONS = 3


class Writer:
    """An idempotent producer with acks=all; `acknowledged` maps each value to its partition and offset."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.failed: list[str] = []
        self._number = 0
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1, "delivery.timeout.ms": 60_000}
        )

    def write_until(self, condition: Callable[[], bool], at_least: int = 200) -> None:
        """Write, with some records in flight, until `condition` holds and `at_least` more are acknowledged."""
        wanted = len(self.acknowledged) + at_least
        deadline = time.monotonic() + 60
        while not (condition() and len(self.acknowledged) >= wanted):
            assert time.monotonic() < deadline, self.failed[:3]
            self._producer.produce(
                TOPIC, b"%d" % self._number, partition=self._number % PARTITIONS, on_delivery=self._delivered
            )
            self._number += 1
            self._producer.poll(0.002)

    def finish(self) -> None:
        assert self._producer.flush(60) == 0
        assert not self.failed

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            assert message.value() not in self.acknowledged
            self.acknowledged[message.value()] = (message.partition(), message.offset())


def _leaders(admin: AdminClient) -> dict[int, int]:
    try:
        partitions = admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions
    except KafkaException:
        return {}
    return {index: partition.leader for index, partition in partitions.items()}


def _in_sync(admin: AdminClient) -> list[int]:
    partitions = admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions
    return sorted(len(partition.isrs) for partition in partitions.values())


def _read(bootstrap: str) -> dict[bytes, tuple[int, int]]:
    """Return partition and offset of every record by its value; fails if a value is there twice."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    ends = {index: consumer.get_watermark_offsets(TopicPartition(TOPIC, index))[1] for index in range(PARTITIONS)}
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: dict[bytes, tuple[int, int]] = {}
    while len(found) < sum(ends.values()):
        for message in consumer.consume(500, 10):
            assert message.error() is None, message.error()
            assert message.value() not in found, "the record is there twice"
            found[message.value()] = (message.partition(), message.offset())
    consumer.close()
    return found


@pytest.fixture
def brokers(tmp_path: Path) -> Any:
    with running(tmp_path) as started:
        yield started


def _prepared(brokers: Brokers) -> tuple[AdminClient, Writer]:
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "topic.metadata.refresh.interval.ms": 200})
    [created] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values()
    created.result(30)
    return admin, Writer(brokers.bootstrap)


def test_every_acknowledged_record_survives_the_death_of_any_broker(brokers: Brokers) -> None:
    admin, writer = _prepared(brokers)
    for dead, server in brokers.servers.items():
        writer.write_until(lambda: dead in _leaders(admin).values())  # noqa: B023 - called in this round
        server.kill()
        writer.write_until(lambda: dead not in _leaders(admin).values())  # noqa: B023
        server.start()
        writer.write_until(lambda: _in_sync(admin) == [3, 3, 3])
    writer.finish()

    found = _read(brokers.bootstrap)

    assert {value: found.get(value) for value in writer.acknowledged} == writer.acknowledged
    for server in brokers.servers.values():
        server.stop()
    for index in range(PARTITIONS):
        logs = [
            b"".join(file.read_bytes() for file in sorted((server.log_dir / f"{TOPIC}-{index}").glob("*.log")))
            for server in brokers.servers.values()
        ]
        assert logs[0] == logs[1] == logs[2]
