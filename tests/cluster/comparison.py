"""The comparison after each scenario: every acknowledged record is once at its offset, and the replicas are equal."""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from tests.cluster.brokers import LIMIT, Brokers, wait_until
from tests.cluster.writers import Writer

Place = tuple[int, int]
"""Partition and offset."""

_HEADER: Final = Struct(">qi")
"""The beginning of a batch: base offset, and the size of what follows."""


class Acknowledged:
    """The records that clients were promised, by topic and value."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[bytes, Place]] = {}

    def add(self, *writers: Writer) -> None:
        """Add the records of writers that have ended."""
        for writer in writers:
            assert writer.acknowledged
            self._topics.setdefault(writer.topic, {}).update(writer.acknowledged)

    def forget(self, topic: str) -> None:
        """Expect no record of a topic that is deleted."""
        self._topics.pop(topic, None)

    def check(self, brokers: Brokers) -> None:
        """Heal the cluster, then compare the records that a client reads, and the files of the replicas."""
        brokers.heal()
        for topic, records in self._topics.items():
            found = read(brokers.bootstrap, topic)
            assert {value: found.get(value) for value in records} == records
        wait_until(lambda: not different_replicas(brokers), lambda: f"equal replicas of {different_replicas(brokers)}")


def read(bootstrap: str, topic: str) -> dict[bytes, Place]:
    """Return the place of each record of a topic; fails if a value is there twice."""
    consumer = _consumer(bootstrap)
    try:
        partitions = consumer.list_topics(topic, LIMIT).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), LIMIT)[1] for each in partitions]
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found: dict[bytes, Place] = {}
        while missing := sum(ends) - len(found):
            messages = consumer.consume(min(missing, 500), LIMIT)  # returns when all of these have arrived
            assert messages, f"{missing} of {sum(ends)} records of {topic} do not arrive"
            for message in messages:
                assert message.error() is None, message.error()
                assert message.value() not in found, f"{message.value()!r} is there twice"
                found[message.value()] = (message.partition(), message.offset())
    finally:
        consumer.close()
    return found


def different_replicas(brokers: Brokers) -> list[str]:
    """Return the partitions whose replicas differ below the high watermark."""
    consumer = _consumer(brokers.bootstrap)
    try:
        return [
            f"{topic}-{index}"
            for topic, partitions in brokers.view().topics.items()
            for index, partition in enumerate(partitions)
            if _differ(
                [brokers.servers[each].log_dir / f"{topic}-{index}" for each in partition.replicas],
                consumer.get_watermark_offsets(TopicPartition(topic, index), LIMIT)[1],
            )
        ]
    finally:
        consumer.close()


def _differ(directories: list[Path], high_watermark: int) -> bool:
    return len({committed(each, high_watermark) for each in directories}) > 1


def committed(directory: Path, high_watermark: int) -> bytes:
    """Return the batches of a partition below the high watermark, which is never inside of one."""
    log = b"".join(file.read_bytes() for file in sorted(directory.glob("*.log")))
    position = 0
    while position + _HEADER.size <= len(log):
        base_offset, size = _HEADER.unpack_from(log, position)
        if base_offset >= high_watermark:
            break
        position += _HEADER.size + size
    return log[:position]


def _consumer(bootstrap: str) -> Consumer:
    # librdkafka requires a group.id even for consumers that only assign.
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0})
