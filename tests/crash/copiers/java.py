"""The copy loop with Kafka's own client, whose objects are used through py4j."""

from __future__ import annotations

import sys
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.crash.copiers import (
    BATCH,
    GROUP,
    INPUT,
    OUTPUT,
    REPLACE_ME,
    TRANSACTION_TIMEOUT_MS,
    Attempt,
    Job,
    RecordToCopy,
    attempts,
    next_offsets,
)
from tests.peers.java_machine import JavaMachine

_CLIENTS = "org.apache.kafka.clients"
_BYTES = "org.apache.kafka.common.serialization.ByteArray"
_FATAL = (
    "ProducerFencedException",
    "InvalidProducerEpochException",
    "OutOfOrderSequenceException",
    "InvalidPidMappingException",
)
_QUICK = {"reconnect.backoff.ms": "10", "reconnect.backoff.max.ms": "50", "retry.backoff.ms": "10"}


def copy(job: Job) -> int:
    """Copy until the producer cannot be used any more; return the exit status."""
    with JavaMachine() as machine:
        copier = _Copier(machine, job)
        try:
            for attempt in attempts(job):
                copier.copy(copier.read(), attempt)
        except Py4JJavaError as error:
            sys.stderr.write(f"{job.name}: {error.java_exception}\n")
        return REPLACE_ME


class _Copier:
    def __init__(self, machine: JavaMachine, job: Job) -> None:
        self._machine = machine
        settings = {
            "bootstrap.servers": job.bootstrap,
            "group.id": GROUP,
            "session.timeout.ms": str(job.session_ms),
            "heartbeat.interval.ms": str(job.heartbeat_ms),
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "max.poll.records": str(BATCH),
            # librdkafka and the bundled client offer it as well: the members of a group need one in common.
            "partition.assignment.strategy": f"{_CLIENTS}.consumer.RangeAssignor",
            **_QUICK,
        }
        self._consumer = self._client("consumer.KafkaConsumer", settings, "Deserializer")
        settings = {
            "bootstrap.servers": job.bootstrap,
            "transactional.id": job.transactional_id,
            "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
            **_QUICK,
        }
        self._producer = self._client("producer.KafkaProducer", settings, "Serializer")
        self._producer.initTransactions()
        self._consumer.subscribe([INPUT])

    def _client(self, name: str, settings: dict[str, str], codec: str) -> Any:
        codecs = [self._machine.new(f"{_BYTES}{codec}") for _ in range(2)]
        return self._machine.new(f"{_CLIENTS}.{name}", settings, *codecs)

    def read(self) -> list[RecordToCopy]:
        """The next batch, at least one record. Rebalances happen only in here."""
        wait = self._machine.named("java.time.Duration").ofMillis(1000)
        found: list[RecordToCopy] = []
        while not found:
            records = self._consumer.poll(wait).iterator()
            while records.hasNext():
                record = records.next()
                found.append(RecordToCopy(record.partition(), record.offset(), record.value()))
        return found

    def copy(self, records: list[RecordToCopy], attempt: Attempt) -> None:
        """Copy a batch in a transaction. Raises Py4JJavaError if this copier cannot continue."""
        producer = self._producer
        producer.beginTransaction()
        try:
            for record in records:
                value = attempt.mark(record.value, len(records))
                producer.send(
                    self._machine.new(f"{_CLIENTS}.producer.ProducerRecord", OUTPUT, record.partition, None, value)
                )
            producer.sendOffsetsToTransaction(self._offsets(records), self._consumer.groupMetadata())
            if not attempt.aborts:
                producer.commitTransaction()
                return
            producer.flush()  # so that there is something in the log to abort
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() in _FATAL:
                raise
        producer.abortTransaction()
        self._go_back()

    def _offsets(self, records: list[RecordToCopy]) -> dict[Any, Any]:
        return {
            self._partition(partition): self._machine.new(f"{_CLIENTS}.consumer.OffsetAndMetadata", offset)
            for partition, offset in next_offsets(records).items()
        }

    def _partition(self, number: int) -> Any:
        return self._machine.new("org.apache.kafka.common.TopicPartition", INPUT, number)

    def _go_back(self) -> None:
        consumer = self._consumer
        committed = consumer.committed(consumer.assignment())
        for partition in consumer.assignment():
            if (found := committed.get(partition)) is None:
                consumer.seekToBeginning([partition])
            else:
                consumer.seek(partition, found.offset())
