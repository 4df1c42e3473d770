"""A member of a consumer group as a process of its own: it prints the offsets that it reads, and may be killed.

`python -m tests.peers.group_member confluent localhost:9092 group topic range` runs until it is stopped. It commits
the offsets that it has printed, and leaves the group on SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable

SESSION_MS = 2000
HEARTBEAT_MS = 300
REMOTE_ASSIGNOR = "uniform"
"""The member uses the consumer protocol (KIP-848), in which the broker sets the session timeout."""
CONSUMER_PROTOCOL = {"group.protocol": "consumer", "group.remote.assignor": REMOTE_ASSIGNOR}

KAFKA_PYTHON_POLL_MS = 30_000
"""Longer than a rebalance takes. kafka-python 3.0 forgets a rebalance that outlives the call of `poll` in which the
leader began it because the topic's partitions changed: it never sends heartbeats again, to Apache Kafka neither."""


class TerminatedError(Exception):
    """SIGTERM has come."""


def confluent(bootstrap: str, group: str, topic: str, assignor: str) -> None:
    from confluent_kafka import Consumer

    protocol = {
        "partition.assignment.strategy": assignor,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": HEARTBEAT_MS,
    }
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **(CONSUMER_PROTOCOL if assignor == REMOTE_ASSIGNOR else protocol),
        }
    )
    consumer.subscribe([topic])
    try:
        while True:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                report(message.partition(), message.offset())
                consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


def kafka_python(bootstrap: str, group: str, topic: str, assignor: str) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        partition_assignment_strategy=[assignors[assignor]],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    try:
        while True:
            for records in consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS).values():
                for record in records:
                    report(record.partition, record.offset)
                consumer.commit()
    finally:
        consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, assignor: str) -> None:
    asyncio.run(_aiokafka(bootstrap, group, topic, assignor))


async def _aiokafka(bootstrap: str, group: str, topic: str, assignor: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        partition_assignment_strategy=[assignors[assignor]],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    await consumer.start()
    try:
        while True:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    report(record.partition, record.offset)
                await consumer.commit()
    finally:
        await consumer.stop()


def report(partition: int, offset: int) -> None:
    sys.stdout.write(f"{partition} {offset}\n")
    sys.stdout.flush()


CLIENTS: dict[str, Callable[[str, str, str, str], None]] = {
    "confluent": confluent,
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
}


def interrupt(*_: object) -> None:
    raise TerminatedError


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    try:
        CLIENTS[sys.argv[1]](*sys.argv[2:])
    except TerminatedError:
        pass
