"""Kafka's own client: the second version of the protocol where it is finalized, otherwise the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.peers.java_machine import JavaMachine
from tests.peers.transactional import TIMEOUT, FencedError, Member, Read, TransactionError

_CLIENTS = "org.apache.kafka.clients"
_BYTES = "org.apache.kafka.common.serialization.ByteArray"
_FENCED = ("ProducerFencedException", "InvalidProducerEpochException")


class Java:
    name = "java"

    def __init__(self, machine: JavaMachine) -> None:
        self._machine = machine

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> JavaProducer:
        return JavaProducer(self._machine, bootstrap, transactional_id, timeout_ms)

    def member(self, bootstrap: str, group: str, topic: str) -> JavaMember:
        return JavaMember(self._machine, bootstrap, group, topic)

    def committed(self, bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
        consumer = _consumer(self._machine, bootstrap, {})
        try:
            assigned = self._machine.new("org.apache.kafka.common.TopicPartition", topic, partition)
            consumer.assign([assigned])
            consumer.seekToBeginning([assigned])
            end = consumer.endOffsets([assigned])[assigned]
            found: list[bytes] = []
            while consumer.position(assigned) < end:
                found += [each.value for each in _poll(self._machine, consumer, 0.1)]
            return found
        finally:
            consumer.close()


class JavaProducer:
    def __init__(self, machine: JavaMachine, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._machine = machine
        self._producer = machine.new(
            f"{_CLIENTS}.producer.KafkaProducer",
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": str(timeout_ms),
                "max.block.ms": str(int(TIMEOUT * 1000)),
            },
            machine.new(f"{_BYTES}Serializer"),
            machine.new(f"{_BYTES}Serializer"),
        )
        with _translated():
            self._producer.initTransactions()

    def begin(self) -> None:
        with _translated():
            self._producer.beginTransaction()

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        records = [
            self._machine.new(f"{_CLIENTS}.producer.ProducerRecord", topic, partition, None, value) for value in values
        ]
        with _translated():
            for future in [self._producer.send(record) for record in records]:
                future.get()

    def send_offsets(self, member: Member, offsets: Mapping[tuple[str, int], int]) -> None:
        assert isinstance(member, JavaMember)
        rows = {
            self._machine.new("org.apache.kafka.common.TopicPartition", *partition): self._machine.new(
                f"{_CLIENTS}.consumer.OffsetAndMetadata", offset
            )
            for partition, offset in offsets.items()
        }
        with _translated():
            self._producer.sendOffsetsToTransaction(rows, member.consumer.groupMetadata())

    def commit(self) -> None:
        with _translated():
            self._producer.commitTransaction()

    def abort(self) -> None:
        with _translated():
            self._producer.abortTransaction()

    def close(self) -> None:
        self._producer.close(_duration(self._machine, 0))


class JavaMember:
    def __init__(self, machine: JavaMachine, bootstrap: str, group: str, topic: str) -> None:
        self._machine = machine
        self.consumer = _consumer(machine, bootstrap, {"group.id": group, "auto.offset.reset": "earliest"})
        self.consumer.subscribe([topic])
        self._polled: list[Read] = []

    def read(self, count: int) -> list[Read]:
        while len(self._polled) < count:
            self._polled += _poll(self._machine, self.consumer, TIMEOUT)
        found, self._polled = self._polled[:count], self._polled[count:]
        return found

    def close(self) -> None:
        self.consumer.close()


def _consumer(machine: JavaMachine, bootstrap: str, more: Mapping[str, str]) -> Any:
    settings = {
        "bootstrap.servers": bootstrap,
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
        **more,
    }
    return machine.new(
        f"{_CLIENTS}.consumer.KafkaConsumer",
        settings,
        machine.new(f"{_BYTES}Deserializer"),
        machine.new(f"{_BYTES}Deserializer"),
    )


def _poll(machine: JavaMachine, consumer: Any, seconds: float) -> list[Read]:
    records = consumer.poll(_duration(machine, seconds)).iterator()
    found = []
    while records.hasNext():
        record = records.next()
        found.append(Read(record.offset(), record.value()))
    return found


def _duration(machine: JavaMachine, seconds: float) -> Any:
    return machine.named("java.time.Duration").ofMillis(int(seconds * 1000))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        names = []
        while thrown is not None and len(names) < 5:
            names.append(thrown.getClass().getSimpleName())
            thrown = thrown.getCause()
        if set(names) & set(_FENCED):
            raise FencedError(names) from error
        raise TransactionError(names) from error
