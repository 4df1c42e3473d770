"""EndTxn: which end is accepted in which state.

Versions 0 to 4 check in this order: id, epoch, a transition under way, state. Every epoch but the current one is
PRODUCER_FENCED.

| state | the same end as before | the other end |
|---|---|---|
| Ongoing | Prepare* | Prepare* |
| Complete* | NONE | INVALID_TXN_STATE |
| Prepare* | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE |
| Empty | INVALID_TXN_STATE | INVALID_TXN_STATE |

From version 5 on every end raises the epoch, and a transition under way is checked first: the producer may have the id
of a rotation already. A *retry* has the epoch before the current one, or 32766 of the id before a rotation; every other
epoch but the current one is PRODUCER_FENCED.

| state | abort, retry | abort, current | commit, retry | commit, current |
|---|---|---|---|---|
| Ongoing | PRODUCER_FENCED | PrepareAbort | PRODUCER_FENCED | PrepareCommit |
| Empty | PRODUCER_FENCED | PrepareAbort | PRODUCER_FENCED | INVALID_TXN_STATE |
| CompleteAbort | NONE | PrepareAbort | INVALID_TXN_STATE | INVALID_TXN_STATE |
| CompleteCommit | INVALID_TXN_STATE | PrepareAbort | NONE | INVALID_TXN_STATE |
| Prepare*, the same end | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED |
| Prepare*, the other end | INVALID_TXN_STATE | PRODUCER_FENCED | INVALID_TXN_STATE | PRODUCER_FENCED |

A transition is under way while a record of the id is being written, and from a decision until its markers are written.
Only a decision whose markers were refused is without one: another coordinator has taken over.
Source: Kafka's `TransactionCoordinator.endTransaction` and `endTransactionWithTV1`, KIP-890.
"""

from __future__ import annotations

from odradek.broker.coordinator.transactions.transaction import (
    FIRST_VERSION_WITH_EPOCH_BUMPS,
    LAST_EPOCH,
    PREPARED,
    Status,
    Transaction,
    bump_and_prepare,
    prepare,
)
from odradek.protocol.errors import ErrorCode, KafkaError

_UNDER_WAY = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "another transition of the transactional id is under way")


def end(
    before: Transaction | None,
    producer_id: int,
    producer_epoch: int,
    *,
    is_commit: bool,
    version: int,
    new_producer_id: int,
    now_ms: int,
    is_busy: bool = False,
) -> Transaction | None:
    """Return the state after an end by the producer, None if it has ended so already.

    `version` is the producer's version of the protocol, `is_busy` whether a record of the id is being written. Raises
    KafkaError.
    """
    if version >= FIRST_VERSION_WITH_EPOCH_BUMPS:
        before, is_retry = _check_bumping(before, producer_id, producer_epoch, is_busy)
        if not _is_accepted(before, is_commit, is_retry):
            return None
        return bump_and_prepare(before, _prepared(is_commit), version, new_producer_id, now_ms)
    before = _check_steady(before, producer_id, producer_epoch, is_busy)
    if before.status is Status.ONGOING:
        return prepare(before, _prepared(is_commit), 0, now_ms)
    if before.status is Status.EMPTY:
        raise _invalid_state(before, is_commit)
    _check_repeated(before, is_commit)
    return None


def _check_steady(before: Transaction | None, producer_id: int, producer_epoch: int, is_busy: bool) -> Transaction:
    if before is None or before.producer_id != producer_id:
        raise _unknown_id(producer_id)
    if before.producer_epoch != producer_epoch:
        raise _fenced(before, producer_epoch)
    if is_busy or before.is_completing:
        raise _UNDER_WAY.fresh()
    return before


def _check_bumping(
    before: Transaction | None, producer_id: int, producer_epoch: int, is_busy: bool
) -> tuple[Transaction, bool]:
    """Return the state, and whether the request is a retry."""
    if is_busy or (before is not None and before.is_completing):
        raise _UNDER_WAY.fresh()
    if before is None:
        raise _unknown_id(producer_id)
    is_retry_of_rotation = (
        before.previous_producer_id == producer_id and producer_epoch == LAST_EPOCH and before.producer_epoch == 0
    )
    if before.producer_id != producer_id and not is_retry_of_rotation:
        raise _unknown_id(producer_id)
    is_retry = is_retry_of_rotation or before.producer_epoch == producer_epoch + 1
    is_current = before.producer_epoch == producer_epoch
    if before.status in PREPARED:
        is_valid = before.producer_epoch == producer_epoch + 1
    elif before.status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT):
        is_valid = is_retry or is_current
    else:
        is_valid = is_current
    if not is_valid:
        raise _fenced(before, producer_epoch)
    return before, is_retry


def _is_accepted(before: Transaction, is_commit: bool, is_retry: bool) -> bool:
    """Return whether the end makes a transition; False if it has been made already. Raises KafkaError."""
    if before.status is Status.ONGOING:
        return True
    if is_retry:
        _check_repeated(before, is_commit)
        return False
    if is_commit:
        raise _invalid_state(before, is_commit)
    return True


def _check_repeated(before: Transaction, is_commit: bool) -> None:
    """Raise unless the last transaction has ended in the same way."""
    if is_commit != (before.status in (Status.PREPARE_COMMIT, Status.COMPLETE_COMMIT)):
        raise _invalid_state(before, is_commit)
    if before.status in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction is being completed")


def _prepared(is_commit: bool) -> Status:
    return Status.PREPARE_COMMIT if is_commit else Status.PREPARE_ABORT


def _unknown_id(producer_id: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer id {producer_id} is not the current one")


def _fenced(before: Transaction, producer_epoch: int) -> KafkaError:
    return KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {producer_epoch} is not {before.producer_epoch}")


def _invalid_state(before: Transaction, is_commit: bool) -> KafkaError:
    end_name = "commit" if is_commit else "abort"
    return KafkaError(ErrorCode.INVALID_TXN_STATE, f"no {end_name} in state {before.status.label}")
