"""Transactions as records of `__transaction_state`: one record for each transition, the last one of an id is valid.

| field | in the log |
|---|---|
| value version | 0 under `transaction.version` 0, else 1 |
| partitions | by topic; null in status Empty |
| previous producer id (tag 0) | always |
| next producer id (tag 1) | only while an end rotates the id |
| client version (tag 2) | only for version 2 of the protocol |

Topics and partitions are sorted, so that the same transition has the same bytes. Version 0 has no tags.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.coordinator.transactions.transaction import (
    NO_PARTITIONS,
    PREPARED,
    Status,
    TopicPartition,
    Transaction,
)
from odradek.protocol.stored_records.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue

RECORD_TYPE = 0


def record_of(transactional_id: str, transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    """Return the record of a state; `transaction_version` is the finalized level of that feature."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=None if transaction.status is Status.EMPTY else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if transaction_version == 0:
        return CoordinatorRecord(RECORD_TYPE, TransactionLogKey(transactional_id), value, 0)
    value.previous_producer_id = transaction.previous_producer_id
    value.next_producer_id = transaction.next_producer_id
    value.client_transaction_version = transaction.client_version
    return CoordinatorRecord(RECORD_TYPE, TransactionLogKey(transactional_id), value, 1)


def tombstone_of(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(RECORD_TYPE, TransactionLogKey(transactional_id), None)


def transaction_of(value: Any) -> Transaction:
    """Return the state that a record says. Raises ValueError if its status is not one that is stored."""
    status = Status(value.transaction_status)
    if status in (Status.DEAD, Status.PREPARE_EPOCH_FENCE):
        raise ValueError(f"status {status.label} is never stored")
    return Transaction(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        status=status,
        partitions=_partitions(value.transaction_partitions),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
        is_completing=status in PREPARED,
    )


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic, indexes) for topic, indexes in topics.items()]


def _partitions(topics: list[PartitionsSchema] | None) -> frozenset[TopicPartition]:
    if not topics:
        return NO_PARTITIONS
    return frozenset((topic.topic, index) for topic in topics for index in topic.partition_ids)
