"""Members of consumer groups, one client each: they commit what they read, and remember what was acknowledged."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka import KafkaConsumer
from kafka.errors import KafkaError as KafkaPythonError

from tests.cluster.brokers import wait_until
from tests.cluster.writers import PARTITIONS
from tests.peers import java

SESSION_MS: Final = 10_000
"""Above what a failover takes, so that a member stays in its group; and a restarted coordinator waits for it."""

Offsets = Mapping[int, int]
"""The next offset to read, by partition."""


class Member(ABC):
    """The only member of its group; reads from the beginning, until the end of its `with` block.

    `committed`: the offsets of the last commit that was acknowledged.
    """

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.topic = topic
        self.committed: dict[int, int] = {}
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_to_the_end, name=type(self).__name__)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._thread.join()
        if error is None:
            assert not self.failures

    def await_commits(self, offsets: Offsets) -> None:
        """Return when commits up to these offsets, or later ones, are acknowledged."""

        def has_committed() -> bool:
            assert not self.failures, self.failures
            return is_at_least(self.committed, offsets)

        wait_until(has_committed, lambda: f"{type(self).__name__}: {self.committed}, not {offsets}")

    @abstractmethod
    def run(self) -> None:
        """Read and commit until `stopping`."""

    def acknowledged(self, offsets: Offsets) -> None:
        """Record an acknowledged commit."""
        for partition, offset in offsets.items():
            if offset < self.committed.get(partition, 0):
                self.failures.append(f"read {partition} again from {offset} after {self.committed[partition]}")
            self.committed[partition] = offset

    def _run_to_the_end(self) -> None:
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 - reported by the test's own thread
            self.failures.append(repr(error))


def is_at_least(offsets: Offsets, wanted: Offsets) -> bool:
    return all(offsets.get(partition, 0) >= offset for partition, offset in wanted.items())


def fetch_offsets(bootstrap: str, group: str, topic: str) -> Offsets:
    """Return the offsets that the group's coordinator has. Raises ConnectionError if it does not answer."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        found = consumer.committed([TopicPartition(topic, each) for each in range(PARTITIONS)], 10)
    except KafkaException as error:
        raise ConnectionError(str(error)) from error
    finally:
        consumer.close()
    return {each.partition: max(each.offset, 0) for each in found}


class Librdkafka(Member):
    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 500,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not self.stopping.is_set():
                messages = [each for each in consumer.consume(100, 0.1) if each.error() is None]
                if messages:
                    self._commit(consumer, {each.partition(): each.offset() + 1 for each in messages})
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer, offsets: Offsets) -> None:
        positions = [TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()]
        try:
            answers = consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException:
            return  # not acknowledged; the next one will be
        self.acknowledged({each.partition: each.offset for each in answers if each.error is None})


class KafkaPython(Member):
    def run(self) -> None:
        consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            reconnect_backoff_max_ms=1000,
            metadata_max_age_ms=1000,  # as leader it assigns nothing if the first broker did not know the topic
        )
        try:
            while not self.stopping.is_set():
                # kafka-python 3.0 forgets the assignment of a rebalance in which `poll` times out, and waits for ever.
                if records := consumer.poll(timeout_ms=1000):
                    self._commit(consumer, {each.partition: read[-1].offset + 1 for each, read in records.items()})
        finally:
            consumer.close()

    def _commit(self, consumer: KafkaConsumer, offsets: Offsets) -> None:
        try:
            consumer.commit()  # what was polled
        except KafkaPythonError:
            return
        self.acknowledged(offsets)


class Aiokafka(Member):
    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            metadata_max_age_ms=1000,  # aiokafka 0.14 repeats ListOffsets to an old leader until the metadata expire
        ) as consumer:
            while not self.stopping.is_set():
                if records := await consumer.getmany(timeout_ms=100):
                    await self._commit(consumer, {each: read[-1].offset + 1 for each, read in records.items()})

    async def _commit(self, consumer: AIOKafkaConsumer, offsets: dict[Any, int]) -> None:
        try:
            await consumer.commit(offsets)
        except AiokafkaError:
            return
        self.acknowledged({each.partition: offset for each, offset in offsets.items()})


class Java(Member):
    """Kafka's VerifiableConsumer, which prints every commit."""

    def run(self) -> None:
        command = java.command(
            "org.apache.kafka.tools.VerifiableConsumer",
            *("--bootstrap-server", self.bootstrap, "--group-id", self.group, "--topic", self.topic),
            *("--reset-policy", "earliest", "--session-timeout", str(SESSION_MS)),
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            threading.Thread(target=self._stop, args=(process,)).start()
            assert process.stdout is not None
            for line in process.stdout:
                event = json.loads(line)
                if event["name"] == "offsets_committed" and event["success"]:
                    self.acknowledged({each["partition"]: each["offset"] for each in event["offsets"]})

    def _stop(self, process: subprocess.Popen[str]) -> None:
        self.stopping.wait()
        process.terminate()
