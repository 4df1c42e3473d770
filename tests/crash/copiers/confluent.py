"""The copy loop with librdkafka.

After a restart of the broker librdkafka 2.16 sometimes never sends the TxnOffsetCommit that follows its
AddOffsetsToTxn, and does not return from the call either. So a copier whose transaction takes too long ends by SIGALRM.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

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

STUCK_SECONDS = 10
_STEP = 5.0
"""Seconds until a call is repeated."""

_QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "enable.sparse.connections": False,
    "log_level": 0,
}


def copy(job: Job) -> int:
    """Copy until the producer or a position cannot be used any more; return the exit status."""
    try:
        copier = _Copier(job)
        for attempt in attempts(job):
            records = copier.read()
            signal.alarm(STUCK_SECONDS)
            copier.copy(records, attempt)
            signal.alarm(0)
    except KafkaException as error:
        sys.stderr.write(f"{job.name}: {error}\n")
    return REPLACE_ME


class _Copier:
    def __init__(self, job: Job) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": GROUP,
                "session.timeout.ms": job.session_ms,
                "heartbeat.interval.ms": job.heartbeat_ms,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **_QUICK,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": job.bootstrap,
                "transactional.id": job.transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 1,
                **_QUICK,
            }
        )
        self._batch: list[RecordToCopy] = []
        self._group: Any = None
        _repeat(self._producer.init_transactions)
        self._consumer.subscribe([INPUT], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def _assigned(self, consumer: Consumer, _partitions: object) -> None:
        """Keep the identity with which these partitions are owned: later the member may have lost it."""
        self._group = consumer.consumer_group_metadata()

    def _revoked(self, _consumer: object, _partitions: object) -> None:
        self._batch.clear()

    def read(self) -> list[RecordToCopy]:
        """The next batch: what was fetched, at least one record."""
        self._batch.clear()
        while not self._batch:
            self._keep(self._consumer.poll(1.0))
        while len(self._batch) < BATCH and (message := self._consumer.poll(0)) is not None:
            self._keep(message)
        return list(self._batch) or self.read()

    def _keep(self, message: Message | None) -> None:
        if message is not None and message.error() is None:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            self._batch.append(RecordToCopy(partition, offset, value))

    def copy(self, records: list[RecordToCopy], attempt: Attempt) -> None:
        """Copy a batch in a transaction. Raises KafkaException if this copier cannot continue."""
        producer = self._producer
        producer.begin_transaction()
        try:
            for record in records:
                producer.produce(OUTPUT, attempt.mark(record.value, len(records)), partition=record.partition)
            done = [TopicPartition(INPUT, *each) for each in next_offsets(records).items()]
            _repeat(lambda timeout: producer.send_offsets_to_transaction(done, self._group, timeout))
            if not attempt.aborts:
                _repeat(producer.commit_transaction)
                return
            producer.flush(_STEP)  # so that there is something in the log to abort
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        _repeat(producer.abort_transaction)
        self._go_back(records)

    def _go_back(self, records: list[RecordToCopy]) -> None:
        """Read the records again, from the committed offsets."""
        partitions = [TopicPartition(INPUT, partition) for partition in next_offsets(records)]
        committed: list[TopicPartition] = _repeat(lambda timeout: self._consumer.committed(partitions, timeout))
        for each in committed:
            offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(TopicPartition(INPUT, each.partition, offset))


def _repeat(call: Callable[[float], Any]) -> Any:
    """Call until the error, if there is one, is not one of those after which the call may be repeated."""
    while True:
        try:
            return call(_STEP)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
