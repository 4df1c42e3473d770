"""The events of a transactional id, and the effects of a transition.

| event | comes from | reply |
|---|---|---|
| `InitProducerId` | InitProducerId | InitProducerIdResponse |
| `AddPartitions` | AddPartitionsToTxn, AddOffsetsToTxn; Produce, TxnOffsetCommit | AddPartitionsToTxnResult |
| `EndTransaction` | EndTxn | EndTxnResponse |
| `AbortTimedOut`, `Expire` | periodic tasks | |
| `MarkersWritten`, `MarkersRefused` | the sender of markers | |

`new_producer_id` is for a new transactional id and for rotations: the coordinator allocates it before it submits the
event, if the state of that moment needs one. If the state has changed meanwhile and needs one that the event lacks, the
reply is CONCURRENT_TRANSACTIONS, and the client retries.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from odradek.broker.coordinator.runtime.events import Effects, Event, ProducerIdAndEpoch
from odradek.broker.coordinator.transactions.transaction import NO_PRODUCER_ID, TopicPartition, Transaction


class InitProducerId(Event, frozen=True):
    """A producer starts, or with `expected` goes on after an error (KIP-360)."""

    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    new_producer_id: int = NO_PRODUCER_ID


class AddPartitions(Event, frozen=True):
    """Partitions become part of the transaction. `version` is the producer's version of the protocol."""

    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    version: int


class EndTransaction(Event, frozen=True):
    """The producer commits or aborts. `version` is its version of the protocol."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    version: int
    new_producer_id: int = NO_PRODUCER_ID


class AbortTimedOut(msgspec.Struct, frozen=True):
    """Fence the producer and abort its transaction, if it is still open for longer than its timeout.

    `decided` is called when the decision is in the log.
    """

    decided: Callable[[], None]
    new_producer_id: int = NO_PRODUCER_ID


class Expire(msgspec.Struct, frozen=True):
    """Forget the id, if it has been idle for `expiration_ms`."""

    expiration_ms: int


class MarkersWritten(msgspec.Struct, frozen=True):
    """The decision is in every partition of the transaction."""

    producer_id: int
    producer_epoch: int


class MarkersRefused(msgspec.Struct, frozen=True):
    """A partition refused the marker for good: its producer or its coordinator has a newer epoch."""

    producer_id: int
    producer_epoch: int


class Transition(Effects, kw_only=True):
    """Effects that replace the state of an id by `after`; it has fields that are not in the record."""

    after: Transaction
