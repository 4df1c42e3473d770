"""The states of a transactional producer, without I/O.

| state | event | next state |
|---|---|---|
| NEW | the coordinator returned an id | READY |
| READY | begin | OPEN |
| OPEN | a batch, an added partition or offsets failed | FAILED |
| OPEN | commit | COMMITTING |
| OPEN, FAILED, COMMITTING before EndTxn was sent | abort | ABORTING |
| COMMITTING | a batch failed in the last flush, or the coordinator refused the commit | FAILED |
| COMMITTING, ABORTING | the coordinator ended the transaction | READY |
| COMMITTING, ABORTING | no response in time | the same: the call may be repeated |
| any | an error of `_UNUSABLE`, or the abort was refused | UNUSABLE |

A transaction is aborted as soon as that is decided: no request to commit it follows, so nothing of it becomes visible,
even if the coordinator has not responded yet. The exception is a *commit in doubt*, a request to commit that had no
response, or an error that the coordinator may also return after it has written the commit. It remains in doubt until

| response to a later request | outcome |
|---|---|
| none to EndTxn (commit) | committed |
| INVALID_TXN_STATE to EndTxn (commit) | aborted, by the coordinator after a timeout |
| PRODUCER_FENCED or INVALID_PRODUCER_EPOCH, and a new epoch from InitProducerId | aborted, likewise |
| the same two, and an error from InitProducerId | never known: another producer has the transactional id |
| INVALID_PRODUCER_ID_MAPPING | never known: the coordinator no longer has the id |
| any other | still in doubt |

Records are accepted in OPEN, and sent in OPEN and COMMITTING. In FAILED, ABORTING and UNUSABLE the records that are not
acknowledged are discarded.

The id and epoch come from the coordinator alone, never from a partition. With version 2 of the protocol each end of a
transaction returns the next ones. With version 1 they stay, and so do the sequences of partitions; after a batch with a
sequence was lost, the producer needs a new epoch (`needs_epoch`), from InitProducerId with its present id and epoch
(KIP-360). It also needs one after a request without a response, which may be delayed in the network: with the same
epoch it could end the next transaction. Differs from Kafka: its Java client goes on with the same epoch.

PRODUCER_FENCED and INVALID_PRODUCER_EPOCH have two causes: another producer uses the transactional id, or the
coordinator aborted the transaction after its timeout. InitProducerId distinguishes them, at the abort that follows: it
returns an epoch only after a timeout.
"""

from __future__ import annotations

from enum import Enum

from odradek.client.errors import (
    BrokerError,
    ClientError,
    ConfigurationError,
    TransactionAbortedError,
    UnsupportedVersionError,
)
from odradek.protocol.errors import ErrorCode

_UNUSABLE = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    }
)
"""Errors after which only a new producer, or none, can continue."""

REPEAT = "Repeat the transaction; consumers that read committed records see nothing of it"


class TransactionOutcome(Enum):
    """The end of a transaction: all of it is visible to consumers that read committed records, or nothing."""

    COMMITTED = "committed"
    ABORTED = "aborted"


class TransactionEnd:
    """The end of one transaction, for its user; the producer may be in a later one.

    `outcome` is None while it is open or in doubt. `failure` is the error that made the producer unusable meanwhile.
    """

    def __init__(self) -> None:
        self.outcome: TransactionOutcome | None = None
        self.failure: ClientError | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the outcome can never be known."""
        return self.outcome is None and self.failure is not None


class Status(Enum):
    """The states of the table above."""

    NEW = "new"
    READY = "ready"
    OPEN = "open"
    FAILED = "failed"
    COMMITTING = "committing"
    ABORTING = "aborting"
    UNUSABLE = "unusable"


_ACCEPTS = frozenset({Status.OPEN})
_SENDS = frozenset({Status.OPEN, Status.COMMITTING})
_DISCARDS = frozenset({Status.FAILED, Status.ABORTING, Status.UNUSABLE})


class TransactionState:
    """The state of one transactional producer.

    `failure` is the first error of the open transaction, or the error that made the producer unusable. `has_started`:
    the coordinator may have the transaction. `commit_was_sent`: the commit has begun, and cannot become an abort.
    `partitions` and `groups` are those that version 1 has added.
    """

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.status = Status.NEW
        self.producer_id = -1
        self.producer_epoch = -1
        self.uses_version_2 = False
        self.failure: ClientError | None = None
        self.has_started = False
        self.needs_epoch = False
        self.commit_was_sent = False
        self.is_in_doubt = False
        self.ended = TransactionEnd()
        self.partitions: set[tuple[str, int]] = set()
        self.groups: set[str] = set()

    @property
    def accepts_records(self) -> bool:
        return self.status in _ACCEPTS

    @property
    def sends_records(self) -> bool:
        return self.status in _SENDS

    @property
    def discards_records(self) -> bool:
        return self.status in _DISCARDS

    def identify(self, producer_id: int, producer_epoch: int) -> None:
        """Continue with an id and epoch of the coordinator; the sequences of all partitions begin at 0."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.needs_epoch = False
        if self.status is Status.NEW:
            self.status = Status.READY

    def begin(self, *, uses_version_2: bool) -> None:
        """Open a transaction. Raises ClientError unless the producer is ready."""
        self.check_usable()
        if self.status is not Status.READY:
            cause = "its last transaction has not ended"
            cure = "Begin one after the other; use several producers for transactions at the same time"
            if self.status is Status.COMMITTING:
                cure = "Await outcome() of that transaction, until it returns"
            raise ConfigurationError(f"begin a transaction of {self.transactional_id}", cause, cure)
        self.status = Status.OPEN
        self.uses_version_2 = uses_version_2
        self.failure = None
        self.has_started = False
        self.commit_was_sent = False
        self.is_in_doubt = False
        self.ended = TransactionEnd()
        self.partitions.clear()
        self.groups.clear()

    def check_accepts(self, tried: str) -> None:
        """Raise the error for a call that needs an open transaction, if there is none or it has failed."""
        self.check_usable()
        if self.status is Status.FAILED:
            raise self.aborted(tried)
        if self.status is not Status.OPEN:
            cure = "Use it inside `async with producer.transaction()`"
            raise ConfigurationError(tried, f"producer {self.transactional_id} has no open transaction", cure)

    def check_usable(self) -> None:
        """Raise the error that made the producer unusable, if there was one."""
        if self.status is Status.UNUSABLE and self.failure is not None:
            raise self.failure.with_traceback(None)  # each raise would add frames to those of the last

    def fail(self, error: ClientError) -> None:
        """Record an error, after which the open transaction can only be aborted."""
        if _is_final(error):
            self.make_unusable(error)
        elif self.status in _SENDS:
            self.status = Status.FAILED
            self.failure = error
            self._decide_abort()

    def make_unusable(self, error: ClientError) -> None:
        """Record an error, after which a new producer is necessary."""
        if self.status is not Status.UNUSABLE:
            self.status = Status.UNUSABLE
            self.failure = error
            self._decide_abort()
            self.ended.failure = error

    def commit(self) -> None:
        """Begin to commit; a failed transaction stays failed. Raises ClientError if no transaction is open."""
        self.check_usable()
        if self.status is Status.OPEN:
            self.status = Status.COMMITTING
        elif self.status not in (Status.COMMITTING, Status.FAILED) and not self.is_in_doubt:
            raise self._has_ended("commit")

    def abort(self) -> None:
        """Begin to abort. Raises ClientError if no transaction is open."""
        self.check_usable()
        if self.status not in (Status.OPEN, Status.FAILED, Status.COMMITTING, Status.ABORTING):
            raise self._has_ended("abort")
        if self.status is Status.COMMITTING and self.commit_was_sent:
            cure = "Await outcome(), until it returns"
            raise ConfigurationError(f"abort a transaction of {self.transactional_id}", "it may be committed", cure)
        self.status = Status.ABORTING
        self._decide_abort()

    @property
    def may_abort(self) -> bool:
        """Whether a transaction is open, and no request to commit it was sent."""
        return self.status in (Status.OPEN, Status.FAILED) or (
            self.status is Status.COMMITTING and not self.commit_was_sent
        )

    def end(self, outcome: TransactionOutcome) -> None:
        """Record the end of the transaction."""
        self.status = Status.READY
        self.ended.outcome = outcome

    def lose_response(self, *, of_commit: bool) -> None:
        """Record that a request may have been executed, now or later, without a response."""
        self.is_in_doubt |= of_commit
        self.needs_epoch |= not self.uses_version_2

    def aborted(self, tried: str) -> TransactionAbortedError:
        """The error for a call in a failed transaction."""
        failure = self.failure
        error = TransactionAbortedError(tried, failure.summary if failure else "the transaction was aborted", REPEAT)
        error.__cause__ = failure
        return error

    def _decide_abort(self) -> None:
        if self.ended.outcome is None and not self.is_in_doubt:
            self.ended.outcome = TransactionOutcome.ABORTED

    def _has_ended(self, action: str) -> ConfigurationError:
        return ConfigurationError(
            f"{action} a transaction of {self.transactional_id}", "no transaction is open", "It has ended already"
        )


def _is_final(error: ClientError) -> bool:
    return isinstance(error, UnsupportedVersionError) or (isinstance(error, BrokerError) and error.code in _UNUSABLE)
