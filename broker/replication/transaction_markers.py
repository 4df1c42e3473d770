"""The markers that end a transaction in its partitions: appended by their leaders, for the transaction coordinator.

```
write_marker ─► append_marker ─► Partition ─► log ─┬─ committed at once ────────────────────────► NONE
                     │ KafkaError                   └─ fsync, writer thread, followers ─► future ─► NONE
                     └──────────────────────────────────────────────────────────────────────────► its code
```
A marker is a control batch with one record (`protocol.records.control_records`). It shows when it is below the high
watermark: then the transaction no longer holds the last stable offset. The log checks its epochs
(`storage.producers.producer_state`). After an error that may pass, the coordinator sends the marker again: a second one
has no effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Final, NamedTuple

from odradek.broker.purgatory import DelayedOperation, Purgatory
from odradek.broker.replication.partition import ACKS_ALL, Partition
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker

TIMEOUT_MS: Final = 30_000
"""The longest wait for other replicas, as Kafka's request.timeout.ms; then the coordinator sends the marker again."""


class TransactionMarker(NamedTuple):
    """The end of a transaction, for any of its partitions. `coordinator_epoch` is the coordinator's leader epoch."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int


def append_marker(
    partition: Partition, marker: TransactionMarker, now_ms: int
) -> AppendInfo | asyncio.Future[AppendInfo]:
    """Append the marker. Returns a future if the append did not end at once; the call or the future raises KafkaError.

    INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED are final: the transaction has ended otherwise.
    """
    kind = ControlRecordType.COMMIT if marker.committed else ControlRecordType.ABORT
    batch = build_end_txn_marker(
        EndTxnMarker(kind, marker.coordinator_epoch), marker.producer_id, marker.producer_epoch, now_ms
    )
    return partition.append_as_leader(
        memoryview(batch), ACKS_ALL, now_ms, Origin.COORDINATOR, marker.transaction_version
    )


def write_marker(
    partition: Partition,
    marker: TransactionMarker,
    now_ms: int,
    purgatory: Purgatory[bool],
    timeout_ms: int = TIMEOUT_MS,
) -> ErrorCode | asyncio.Future[ErrorCode]:
    """Append the marker, and wait until it shows: return NONE, or the code of the error.

    The purgatory must be one that is touched when the high watermark moves. REQUEST_TIMED_OUT and
    NOT_ENOUGH_REPLICAS_AFTER_APPEND leave the marker in the log, where it may still be committed.
    """
    leader_epoch = partition.leader_epoch
    try:
        appended = append_marker(partition, marker, now_ms)
    except KafkaError as error:
        return error.code
    if isinstance(appended, AppendInfo):
        code = partition.acknowledgement(appended.last_offset + 1, leader_epoch)
        if code is not None:
            return code
    return asyncio.ensure_future(_acknowledged(partition, leader_epoch, appended, purgatory, timeout_ms))


async def _acknowledged(
    partition: Partition,
    leader_epoch: int,
    appended: AppendInfo | asyncio.Future[AppendInfo],
    purgatory: Purgatory[bool],
    timeout_ms: int,
) -> ErrorCode:
    try:
        info = appended if isinstance(appended, AppendInfo) else await appended
    except KafkaError as error:
        return error.code
    next_offset = info.last_offset + 1
    code = partition.acknowledgement(next_offset, leader_epoch)
    if code is None:
        await purgatory.park(_DelayedMarker(partition, leader_epoch, next_offset), (partition,), timeout_ms)
        code = partition.acknowledgement(next_offset, leader_epoch)
    return ErrorCode.REQUEST_TIMED_OUT if code is None else code


class _DelayedMarker(DelayedOperation[bool]):
    """Waits until every in-sync replica has the marker, or this broker leads no more. The answer is whether it did."""

    def __init__(self, partition: Partition, leader_epoch: int, next_offset: int) -> None:
        self._partition = partition
        self._leader_epoch = leader_epoch
        self._next_offset = next_offset

    def is_ready(self, key: Hashable) -> bool:  # noqa: ARG002 - there is one key
        return self.answer()

    def answer(self) -> bool:
        return self._partition.acknowledgement(self._next_offset, self._leader_epoch) is not None
