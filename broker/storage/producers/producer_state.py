"""The idempotent producers of a partition and their transactions (KIP-98), as in Kafka's `ProducerStateManager`.

The leader's checks of a client's batch of producer p, epoch e, first sequence s; `entry` is the stored state of p:

| state                                            | batch                        | outcome                        |
|--------------------------------------------------|------------------------------|--------------------------------|
| p unknown (new, expired, or its records deleted) | any                          | accepted                       |
| entry.epoch > e                                  | any                          | INVALID_PRODUCER_EPOCH         |
| entry.epoch = e, one of the last five batches    | the same sequences           | duplicate, with its offsets    |
| entry.epoch = e                                  | s follows the last sequence  | accepted                       |
| entry.epoch = e                                  | any other s                  | OUT_OF_ORDER_SEQUENCE_NUMBER   |
| entry.epoch < e                                  | s = 0                        | accepted, older batches dropped |
| entry.epoch < e                                  | any other s                  | OUT_OF_ORDER_SEQUENCE_NUMBER   |
| in a transaction                                 | not transactional            | INVALID_TXN_STATE              |

An unknown producer with transactions of version 2 (KIP-890) must begin with s = 0, else OUT_OF_ORDER_SEQUENCE_NUMBER:
if a later batch were accepted, its first one would be rejected.

After sequence 2^31 - 1 comes 0. Coordinators and followers skip the sequence checks, and followers the epoch check as
well: they append what the leader accepted. A transactional batch opens a transaction at its first offset if none is
open. A marker closes it. Its producer epoch e is checked as follows, and its coordinator epoch must not be older than
the last marker's (TRANSACTION_COORDINATOR_FENCED), which `LAST_COORDINATOR_EPOCH` makes void:

| state                                     | transaction version 0, 1 | version 2              |
|-------------------------------------------|--------------------------|------------------------|
| entry.epoch < e                           | accepted                 | accepted               |
| entry.epoch = e, no transaction           | accepted                 | accepted: it is a retry |
| entry.epoch = e = 32767, in a transaction | accepted                 | accepted               |
| entry.epoch = e, in a transaction         | accepted                 | INVALID_PRODUCER_EPOCH |
| entry.epoch > e                           | INVALID_PRODUCER_EPOCH   | INVALID_PRODUCER_EPOCH |

A marker of version 2 raises the epoch, so that no delayed batch or marker of its transaction touches the next one. One
that was written before is written again without effect (KAFKA-19999).

A transaction is *ongoing* until its marker, and *unreplicated* until the marker is below the high watermark. The first
offset of the earliest transaction of either kind is the first unstable offset; `read_committed` readers stop there.

Only the appender changes the state, after the bytes are written; a check changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from odradek.broker.storage.producers.verification_state import Verification, Verifications
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import MAX_SEQUENCE, BatchHeader
from odradek.protocol.records.control_records import LAST_COORDINATOR_EPOCH, ControlRecordType, EndTxnMarker

BATCHES_KEPT = 5  # clients have at most five requests in flight, so no older batch can be a retry that matters
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_EPOCH = -1
NO_OFFSET = -1

FOREIGN_PRODUCER_IDS = 1 << 62
"""Clusters assign ids below this one: they count from 0, or from 2^40. A client may write any id, and an id at the end
of the range must not use up those below."""

STRICT_VERSION: Final = 2
"""The first transaction version in which each transaction of a producer has an epoch of its own (KIP-890)."""

LAST_EPOCH: Final = 32767
"""The largest epoch; only markers have it. The producer continues with another id."""

CROWD: Final = 1000
"""Writing or scanning this many producers takes a millisecond."""


class AppendedBatch(NamedTuple):
    """A batch with its sequences and its offsets, all inclusive. `timestamp` is the batch's largest."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    """The state of one producer in one partition: its epoch, and the last five batches that it wrote.

    `epoch` is -1 until something was appended; `transaction_first_offset` is -1 outside a transaction;
    `coordinator_epoch` is that of the last transaction marker, -1 without one. Batches are those of the current epoch.
    """

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "transaction_first_offset")

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        transaction_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_first_offset = transaction_first_offset
        self.batches: tuple[AppendedBatch, ...] = ()  # the latest last; a deque would take 600 bytes for none

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the last batch kept, or -1."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def is_followed_by(self, first_sequence: int) -> bool:
        """Whether this sequence is the one after the last batch."""
        last_sequence = self.batches[-1].last_sequence if self.batches else NO_SEQUENCE
        return first_sequence == (last_sequence + 1) & MAX_SEQUENCE

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> AppendedBatch | None:
        """The stored batch with exactly these sequences, or None."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        return None

    def add_batch(self, epoch: int, batch: AppendedBatch) -> None:
        self.take_epoch(epoch)
        self.batches = (*self.batches[1 - BATCHES_KEPT :], batch)
        self.last_timestamp = batch.timestamp

    def take_epoch(self, epoch: int) -> None:
        """Move to `epoch`; drop the batches of another epoch."""
        if epoch != self.epoch:
            self.batches = ()
            self.epoch = epoch


def preceding_sequence(sequence: int, distance: int) -> int:
    """The sequence `distance` before `sequence`; before 0 comes 2^31 - 1."""
    return (sequence - distance) & MAX_SEQUENCE


class CompletedTransaction(NamedTuple):
    """A transaction with a marker. `last_offset` is that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerState:
    """The producers of one partition, by id. `end_offset` (exclusive) is the part of the log that the state covers.

    `highest_id` is the highest producer id seen here, also of expired producers; -1 without any. Ids from
    `FOREIGN_PRODUCER_IDS` on do not count. `is_crowded`: there are more than `CROWD` producers.
    """

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0
        self.highest_id = NO_PRODUCER_ID
        self.is_crowded = False
        self.verifications = Verifications()
        # First offset → producer id, in the order of offsets; the first of a dict is slow to find behind removed ones.
        self._ongoing: OrderedDict[int, int] = OrderedDict()
        self._unreplicated: list[tuple[int, int]] = []  # a heap of first offset and offset of the marker

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(list(self.entries.values()))  # a copy: the appender may add producers meanwhile

    def __len__(self) -> int:
        return len(self.entries)

    def load(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Replace the state by that of a snapshot at `end_offset`."""
        self.entries = {entry.producer_id: entry for entry in entries}
        open_transactions = [e for e in self.entries.values() if e.transaction_first_offset != NO_OFFSET]
        open_transactions.sort(key=lambda entry: entry.transaction_first_offset)
        self._ongoing = OrderedDict(
            [(entry.transaction_first_offset, entry.producer_id) for entry in open_transactions]
        )
        self._unreplicated = []
        self.verifications.clear()
        self.end_offset = end_offset
        self.is_crowded = len(self.entries) > CROWD

    def record_id(self, producer_id: int) -> None:
        """Update `highest_id` for a producer id in the log."""
        if self.highest_id < producer_id < FOREIGN_PRODUCER_IDS:
            self.highest_id = producer_id

    # -------------------------------------------------------------------------------------------------- data batches

    def begin_verification(self, producer_id: int, epoch: int, first_sequence: int, now_ms: int) -> Verification | None:
        """Begin to verify a transactional batch; None if it belongs to a transaction that is open here.

        Raises KafkaError INVALID_PRODUCER_EPOCH if the producer has a newer epoch: no coordinator has to decide that.
        """
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {epoch} of producer {producer_id} is older than {entry.epoch}"
            )
        if entry is not None and entry.transaction_first_offset != NO_OFFSET and entry.epoch == epoch:
            return None
        return self.verifications.begin(producer_id, epoch, first_sequence, now_ms)

    def check(
        self,
        header: BatchHeader,
        from_client: bool,
        transaction_version: int = 0,
        verification: Verification | None = None,
    ) -> AppendedBatch | None:
        """Check a data batch before a leader appends it; return the first batch if it is a duplicate, else None.

        `transaction_version` is that of the producer's transactions. Without `verification` a batch may open a
        transaction. Raises `KafkaError` as the module's table says, and as `Verifications.check`.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            if verification is not None:
                self.verifications.check(header.producer_id, header.base_sequence, verification)
            if from_client and transaction_version >= STRICT_VERSION and header.base_sequence:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} is unknown and sent sequence {header.base_sequence}, not 0",
                )
            return None
        epoch = header.producer_epoch
        is_expected = epoch == entry.epoch and entry.is_followed_by(header.base_sequence)
        if from_client and not is_expected:
            duplicate = entry.find_duplicate(epoch, header.base_sequence, header.last_sequence)
            if duplicate is not None:
                return duplicate
        if epoch < entry.epoch:
            raise _fenced(header.producer_id, epoch, entry.epoch)
        is_in_transaction = entry.transaction_first_offset != NO_OFFSET
        if verification is not None and not (is_in_transaction and epoch == entry.epoch):
            self.verifications.check(header.producer_id, header.base_sequence, verification)
        if from_client and not is_expected:
            _check_new_sequence(entry, epoch, header.base_sequence)
        if is_in_transaction and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} is in a transaction, the batch is not"
            )
        return None

    def add_batch(self, header: BatchHeader, base_offset: int) -> None:
        """Record a data batch that was appended at `base_offset`; `header` may still lack that offset."""
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self._new_entry(producer_id)
        last_offset = base_offset + header.last_offset_delta
        entry.add_batch(
            header.producer_epoch,
            AppendedBatch(header.base_sequence, header.last_sequence, base_offset, last_offset, header.max_timestamp),
        )
        if header.is_transactional and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = base_offset
            self._ongoing[base_offset] = producer_id
            self.verifications.end(producer_id)

    # ------------------------------------------------------------------------------------------------------- markers

    def check_marker(self, header: BatchHeader, marker: EndTxnMarker, transaction_version: int = 0) -> None:
        """Check a marker before a leader appends it. Raises `KafkaError` for a fenced producer or coordinator."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        epoch = header.producer_epoch
        if epoch < entry.epoch:
            raise _fenced(header.producer_id, epoch, entry.epoch)
        if (
            epoch == entry.epoch < LAST_EPOCH
            and transaction_version >= STRICT_VERSION
            and entry.transaction_first_offset != NO_OFFSET
        ):
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id}: a marker of epoch {epoch} does not end a transaction of that epoch",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {header.producer_id}: a marker of coordinator epoch {marker.coordinator_epoch}, "
                f"the last was {entry.coordinator_epoch}",
            )

    def add_marker(self, header: BatchHeader, marker: EndTxnMarker, offset: int) -> CompletedTransaction | None:
        """Record a marker appended at `offset`; return the transaction that it ends, if there was one.

        The caller writes an aborted one to the transaction index, with `last_stable_offset_after`, and then calls
        `complete`: if the index fails, the transaction must stay unstable.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self._new_entry(header.producer_id)
        first_offset = entry.transaction_first_offset
        entry.take_epoch(header.producer_epoch)
        is_last = marker.coordinator_epoch == LAST_COORDINATOR_EPOCH  # then the next coordinators have lower ones
        entry.coordinator_epoch = NO_EPOCH if is_last else marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.transaction_first_offset = NO_OFFSET
        self.verifications.end(header.producer_id)
        if first_offset == NO_OFFSET:
            return None
        return CompletedTransaction(header.producer_id, first_offset, offset, marker.type == ControlRecordType.ABORT)

    def _new_entry(self, producer_id: int) -> ProducerEntry:
        self.record_id(producer_id)
        entry = self.entries[producer_id] = ProducerEntry(producer_id)
        self.is_crowded = len(self.entries) > CROWD
        return entry

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset once `completed` is complete and everything is replicated."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """Move the transaction from ongoing to unreplicated."""
        del self._ongoing[completed.first_offset]
        heappush(self._unreplicated, (completed.first_offset, completed.last_offset))

    # -------------------------------------------------------------------------------------------------- transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest transaction that is open, or whose marker is not yet replicated."""
        ongoing = next(iter(self._ongoing), None)
        unreplicated = self._unreplicated[0][0] if self._unreplicated else None
        if ongoing is None or unreplicated is None:
            return unreplicated if ongoing is None else ongoing
        return min(ongoing, unreplicated)

    def replicated_up_to(self, offset: int) -> None:
        """Settle the transactions with markers below `offset`, which is replicated or deleted.

        Later ones are removed when they have become the earliest.
        """
        while self._unreplicated and self._unreplicated[0][1] < offset:
            heappop(self._unreplicated)

    # -------------------------------------------------------------------------------------------------------- expiry

    def ids_in_parts(self, size: int) -> list[list[int]]:
        """The ids of all producers, in lists of at most `size`."""
        rest = iter(self.entries)
        parts = []
        while part := list(islice(rest, size)):
            parts.append(part)
        return parts

    def remove_expired(self, now_ms: int, expiration_ms: int, producer_ids: Iterable[int] | None = None) -> int:
        """Remove producers that have been idle for `expiration_ms` and are in no transaction; return how many.

        With `producer_ids`, checks only these; unknown ids are ignored.
        """
        self.verifications.remove_expired(now_ms, expiration_ms)
        entries = self.entries
        expired = []
        for producer_id in list(entries) if producer_ids is None else producer_ids:
            entry = entries.get(producer_id)
            if entry is None or entry.transaction_first_offset != NO_OFFSET:
                continue
            if now_ms - entry.last_timestamp >= expiration_ms:
                expired.append(producer_id)
        for producer_id in expired:
            del entries[producer_id]
        self.is_crowded = len(entries) > CROWD
        return len(expired)


def _check_new_sequence(entry: ProducerEntry, epoch: int, first_sequence: int) -> None:
    """Reject a batch that neither follows the last one of its epoch nor begins a new epoch with sequence 0."""
    if epoch == entry.epoch:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {entry.producer_id} sent sequence {first_sequence} after {entry.last_sequence}",
        )
    if first_sequence != 0 and entry.epoch != NO_EPOCH:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {entry.producer_id} starts epoch {epoch} with sequence {first_sequence}, not 0",
        )


def _fenced(producer_id: int, epoch: int, current: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} sent epoch {epoch}, the current one is {current}"
    )
