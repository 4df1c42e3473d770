"""The state of one transactional id, and its transitions: pure functions from one state to the next.

| from | event | to |
|---|---|---|
| none, Empty, Complete* | InitProducerId | Empty: no partitions, start −1 |
| Empty, Complete*, Ongoing | partitions or offsets are added | Ongoing; the start is that of the first addition |
| Ongoing | EndTxn, commit or abort (`end_transaction`) | PrepareCommit, PrepareAbort |
| Empty, Complete* | EndTxn from version 5 on, abort (`end_transaction`) | PrepareAbort, without partitions |
| Ongoing | InitProducerId, or the time-out | PrepareAbort, with a new epoch: the producer is fenced |
| Prepare* | all markers are written | Complete*, without partitions |
| Empty, Complete* | idle for `transactional.id.expiration.ms` | none, by a tombstone |

| request | Prepare* | the epoch or id is not the current one |
|---|---|---|
| InitProducerId | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED, unless it repeats an earlier one (KIP-360) |
| partitions or offsets are added | CONCURRENT_TRANSACTIONS | INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED |

Epochs begin with 0. 32766 (`LAST_EPOCH`) is the last one that a producer gets: the next InitProducerId, or in version
2 of the protocol the next end, takes a new producer id and epoch 0. The markers of such an end have epoch 32767 of the
old id.

| | version 1 | version 2 (KIP-890) |
|---|---|---|
| InitProducerId | + 1 | + 1 |
| end by the producer | | + 1 |
| end by fencing | + 1 | + 1, once for both (KAFKA-19367) |
| epoch of the markers | the producer's | the new one |

A transition returns the next state and changes nothing: the state of an id is replaced when its record is in the log.
Kafka's `TransactionMetadata` and `TransactionCoordinator` are the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from odradek.broker.coordinator.runtime.events import ProducerIdAndEpoch
from odradek.protocol.errors import ErrorCode, KafkaError

TopicPartition = tuple[str, int]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
LAST_EPOCH: Final = 0x7FFE
"""The last epoch that a producer gets, so that one is left to fence it."""

NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()

FIRST_VERSION_WITH_EPOCH_BUMPS: Final = 2
"""Of `transaction.version`: each end of a transaction raises the epoch."""


class Status(IntEnum):
    """The status in the log. The last two are never there, but ListTransactions accepts their names."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name, as in PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STATUS_OF_LABEL: Final = {status.label: status for status in Status}
PREPARED: Final = frozenset({Status.PREPARE_COMMIT, Status.PREPARE_ABORT})
IDLE: Final = frozenset({Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT})


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """The state of one transactional id.

    - `previous_producer_id` is the id before the last transition: the same one, unless that was a rotation.
    - `next_producer_id` is the new id while the end of a transaction rotates it.
    - `client_version` is the version of the protocol that the last transaction used.
    - `last_producer_epoch` is the epoch before the last one, if the same producer may go on with it after an error.
      It is not in the log: after a restart it is −1, as in Kafka.
    - `is_completing`: the decision is in the log, and markers are being written. Not in the log either.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status = Status.EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_ms: int = -1
    update_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0
    last_producer_epoch: int = NO_EPOCH
    is_completing: bool = False

    @property
    def is_exhausted(self) -> bool:
        """Whether the next producer needs another producer id."""
        return self.producer_epoch >= LAST_EPOCH

    def is_timed_out(self, now_ms: int) -> bool:
        return self.status is Status.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        return self.status in IDLE and self.update_ms <= now_ms - expiration_ms


def initialize(
    before: Transaction | None,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: int,
    version: int,
    now_ms: int,
) -> Transaction:
    """Return the state after InitProducerId: Empty, or PrepareAbort if a transaction is open, whose producer is fenced.

    `expected` is the id and epoch that the producer had, if it goes on after an error (KIP-360). `new_producer_id` is
    for a new transactional id or a rotation, `version` the finalized `transaction.version`. Raises KafkaError.
    """
    if before is None:
        _check_new_id(new_producer_id)
        return Transaction(new_producer_id, 0, timeout_ms, update_ms=now_ms, previous_producer_id=new_producer_id)
    if before.is_completing:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the previous transaction is being completed")
    _check_expected(before, expected)
    if before.status in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the previous transaction is not completed")
    if before.status is Status.ONGOING:
        return fence(before, version, new_producer_id, now_ms)
    after = replace(
        before,
        status=Status.EMPTY,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=-1,
        update_ms=now_ms,
        previous_producer_id=before.producer_id,
        last_producer_epoch=NO_EPOCH if expected is None else before.producer_epoch,
    )
    if expected is not None and expected.producer_epoch != before.producer_epoch:
        if expected.producer_epoch != before.last_producer_epoch:
            raise _fenced(before, expected.producer_epoch)
        # The answer to an earlier request was lost: the epoch was raised already.
        return replace(after, last_producer_epoch=before.last_producer_epoch)
    if not before.is_exhausted:
        return replace(after, producer_epoch=before.producer_epoch + 1)
    _check_new_id(new_producer_id)
    return replace(after, producer_id=new_producer_id, producer_epoch=0)


def _check_expected(before: Transaction, expected: ProducerIdAndEpoch | None) -> None:
    """Raise PRODUCER_FENCED if a producer with this id, or with the one before a rotation, cannot go on."""
    if expected is None or expected.producer_id == before.producer_id:
        return
    if expected.producer_id != before.previous_producer_id or expected.producer_epoch < LAST_EPOCH:
        raise KafkaError(ErrorCode.PRODUCER_FENCED, f"producer id {expected.producer_id} is fenced")


def fence(before: Transaction, version: int, new_producer_id: int, now_ms: int) -> Transaction:
    """Return the state in which the open transaction is aborted and its producer fenced.

    `version` is the finalized `transaction.version`. Raises KafkaError.
    """
    if version >= FIRST_VERSION_WITH_EPOCH_BUMPS:
        return bump_and_prepare(before, Status.PREPARE_ABORT, version, new_producer_id, now_ms)
    return replace(
        prepare(before, Status.PREPARE_ABORT, 0, now_ms),
        producer_epoch=before.producer_epoch + 1,
        last_producer_epoch=NO_EPOCH,
    )


def prepare(before: Transaction, status: Status, version: int, now_ms: int) -> Transaction:
    """Return the state after the decision about the open transaction, for version 1 of the protocol."""
    return replace(
        before,
        status=status,
        update_ms=now_ms,
        previous_producer_id=before.producer_id,
        client_version=version,
        is_completing=True,
    )


def bump_and_prepare(
    before: Transaction, status: Status, version: int, new_producer_id: int, now_ms: int
) -> Transaction:
    """Return the state after the decision, for version 2: with the next epoch. Raises KafkaError.

    Without an open transaction it begins now: Kafka stores a start here.
    """
    after = replace(
        prepare(before, status, version, now_ms),
        producer_epoch=before.producer_epoch + 1,
        last_producer_epoch=before.producer_epoch,
        start_ms=before.start_ms if before.status is Status.ONGOING else now_ms,
    )
    if not before.is_exhausted:
        return after
    _check_new_id(new_producer_id)
    return replace(after, next_producer_id=new_producer_id)


def check_producer(transaction: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    """Return the state if that producer is the current one and its last transaction has ended, else raise."""
    if transaction is None or transaction.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer id {producer_id} is not the current one")
    if transaction.producer_epoch != producer_epoch:
        raise _fenced(transaction, producer_epoch)
    if transaction.status in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the previous transaction is being completed")
    return transaction


def check_partitions(
    transaction: Transaction | None, producer_id: int, producer_epoch: int, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Return TRANSACTION_ABORTABLE for each partition that is not in the producer's transaction. Raises KafkaError."""
    current = check_producer(transaction, producer_id, producer_epoch)
    missing = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the partition is not in the transaction")
    return {each: None if each in current.partitions else missing for each in partitions}


def add_partitions(
    before: Transaction, partitions: frozenset[TopicPartition], version: int, now_ms: int
) -> Transaction | None:
    """Return the state with these partitions in the transaction, None if it has them already."""
    is_open = before.status is Status.ONGOING
    if is_open and partitions <= before.partitions:
        return None
    return replace(
        before,
        status=Status.ONGOING,
        partitions=before.partitions | partitions,
        start_ms=before.start_ms if is_open else now_ms,
        update_ms=now_ms,
        previous_producer_id=before.producer_id,
        client_version=version,
    )


def complete(before: Transaction, now_ms: int) -> Transaction:
    """Return the state after all markers of a prepared transaction are written."""
    is_commit = before.status is Status.PREPARE_COMMIT
    after = replace(
        before,
        status=Status.COMPLETE_COMMIT if is_commit else Status.COMPLETE_ABORT,
        partitions=NO_PARTITIONS,
        update_ms=now_ms,
        previous_producer_id=before.producer_id,
        is_completing=False,
    )
    if before.client_version < FIRST_VERSION_WITH_EPOCH_BUMPS or before.next_producer_id == NO_PRODUCER_ID:
        return after
    return replace(after, producer_id=before.next_producer_id, producer_epoch=0, next_producer_id=NO_PRODUCER_ID)


def _fenced(transaction: Transaction, producer_epoch: int) -> KafkaError:
    return KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {producer_epoch} is not {transaction.producer_epoch}")


def _check_new_id(producer_id: int) -> None:
    """Raise if the event brought no producer id: the state has changed since the coordinator looked. Clients retry."""
    if producer_id == NO_PRODUCER_ID:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transactional id has just changed")
