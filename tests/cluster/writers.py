"""Idempotent producers of several clients, each in a thread of its own, and what was acknowledged to them.

A writer sends numbered records to the partitions of one topic in turn, until the end of its `with` block; that fails
if a record is not acknowledged. At most `UNANSWERED` records are without an answer, so that a writer waits while the
cluster does.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from tests.cluster.brokers import wait_until
from tests.peers import java

PARTITIONS: Final = 3
UNANSWERED: Final = 60
DELIVERY_MS: Final = 240_000

_PACE: Final = 0.003
"""Seconds between two records: the machine has other work."""


class Writer(ABC):
    """Usable once. `acknowledged` maps each value to its partition and offset."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.failures: list[str] = []
        self.bootstrap = bootstrap
        self.topic = topic
        self.stopping = threading.Event()
        self._sent = 0
        self._answered = 0
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
            assert self._answered == self._sent

    def await_progress(self, count: int = 10) -> None:
        """Return when so many records of each partition, all sent after this call, are acknowledged."""
        first = self._sent

        def has_progress() -> bool:
            assert not self.failures, self.failures
            recent = [place for value, place in self.acknowledged.copy().items() if _number(value) >= first]
            return all(sum(place[0] == each for place in recent) >= count for each in range(PARTITIONS))

        wait_until(has_progress, self.__repr__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self._sent} sent, {len(self.acknowledged)} acknowledged, {self.failures[:3]}"

    @abstractmethod
    def run(self) -> None:
        """Send while `may_send()`, until `stopping`; return when every record is answered."""

    def may_send(self) -> bool:
        return self._sent - self._answered < UNANSWERED

    def next_value(self) -> bytes:
        self._sent += 1
        return b"%s-%d" % (type(self).__name__.encode(), self._sent - 1)

    def succeeded(self, value: bytes, partition: int, offset: int) -> None:
        if value in self.acknowledged:
            self.failures.append(f"{value!r} was acknowledged twice")
        self.acknowledged[value] = (partition, offset)
        self._answered += 1

    def failed(self, error: object) -> None:
        self.failures.append(repr(error))
        self._answered += 1

    def _run_to_the_end(self) -> None:
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 - reported by the test's own thread
            self.failures.append(repr(error))


def _number(value: bytes) -> int:
    return int(re.split(rb"\D", value)[-1])


def partition_of(value: bytes) -> int:
    return _number(value) % PARTITIONS


class Librdkafka(Writer):
    def run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "delivery.timeout.ms": DELIVERY_MS,
                "socket.timeout.ms": 5000,  # a paused broker does not answer
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
        )
        while not self.stopping.is_set():
            if self.may_send():
                value = self.next_value()
                producer.produce(self.topic, value, partition=partition_of(value), on_delivery=self._delivered)
            producer.poll(_PACE)
        assert producer.flush(DELIVERY_MS / 1000) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed(error)
        else:
            self.succeeded(message.value(), message.partition(), message.offset())


class KafkaPython(Writer):
    def run(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            delivery_timeout_ms=DELIVERY_MS,
            max_block_ms=DELIVERY_MS,
            request_timeout_ms=5000,
            reconnect_backoff_max_ms=1000,
        )
        try:
            while not self.stopping.wait(_PACE):
                if self.may_send():
                    self._send(producer, self.next_value())
            producer.flush(timeout=DELIVERY_MS / 1000)
        finally:
            producer.close()

    def _send(self, producer: KafkaProducer, value: bytes) -> None:
        sent = producer.send(self.topic, value, partition=partition_of(value))
        sent.add_callback(lambda placed: self.succeeded(value, placed.partition, placed.offset))
        sent.add_errback(self.failed)


class Aiokafka(Writer):
    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with AIOKafkaProducer(bootstrap_servers=self.bootstrap, enable_idempotence=True) as producer:
            while not self.stopping.is_set():
                if self.may_send():
                    await self._send(producer, self.next_value())
                await asyncio.sleep(_PACE)
            await producer.flush()

    async def _send(self, producer: AIOKafkaProducer, value: bytes) -> None:
        def answered(sent: asyncio.Future[Any]) -> None:
            if (error := sent.exception()) is not None:
                self.failed(error)
            else:
                self.succeeded(value, sent.result().partition, sent.result().offset)

        (await producer.send(self.topic, value, partition=partition_of(value))).add_done_callback(answered)


class Java(Writer):
    """Kafka's VerifiableProducer, which prints every answer; it chooses the partitions."""

    def __init__(self, bootstrap: str, topic: str, directory: Path) -> None:
        super().__init__(bootstrap, topic)
        self._config = directory / f"{topic}.properties"

    def run(self) -> None:
        self._config.write_text(
            f"enable.idempotence=true\nretries=2147483647\ndelivery.timeout.ms={DELIVERY_MS}\n"
            "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner\n"
        )
        command = java.command(
            "org.apache.kafka.tools.VerifiableProducer",
            *("--bootstrap-server", self.bootstrap, "--topic", self.topic, "--throughput", "200"),
            *("--command-config", str(self._config), "--value-prefix", "1"),
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            threading.Thread(target=self._stop, args=(process,)).start()
            assert process.stdout is not None
            for line in process.stdout:
                self._read(json.loads(line))

    def _read(self, event: dict[str, Any]) -> None:
        if event["name"].startswith("producer_send_"):
            self._sent += 1  # it does not report what is on its way
        if event["name"] == "producer_send_success":
            self.succeeded(event["value"].encode(), event["partition"], event["offset"])
        elif event["name"] == "producer_send_error":
            self.failed(event)

    def _stop(self, process: subprocess.Popen[str]) -> None:
        self.stopping.wait()
        process.terminate()
