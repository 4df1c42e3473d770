"""Who writes to a partition: idempotent producers and their transactions (KIP-98), as Kafka's `ProducerStateManager`.

What a leader does with a client's batch of producer p, epoch e, first sequence s; `entry` is what is known of p:

| state                                            | batch                        | outcome                        |
|--------------------------------------------------|------------------------------|--------------------------------|
| p unknown (new, expired, or its records deleted) | any                          | taken                          |
| entry.epoch > e                                  | any                          | INVALID_PRODUCER_EPOCH         |
| entry.epoch = e, one of the last five batches    | the same sequences           | duplicate, offsets of then     |
| entry.epoch = e                                  | s follows the last sequence  | taken                          |
| entry.epoch = e                                  | any other s                  | OUT_OF_ORDER_SEQUENCE_NUMBER   |
| entry.epoch < e                                  | s = 0                        | taken, older batches forgotten |
| entry.epoch < e                                  | any other s                  | OUT_OF_ORDER_SEQUENCE_NUMBER   |
| in a transaction                                 | not transactional            | INVALID_TXN_STATE              |

Sequences go from 2^31 - 1 to 0. Coordinators and followers skip the sequence checks, followers the epoch check as well:
what a leader took is to be followed. A transactional batch opens a transaction at its first offset if none is open. A
marker closes it; it may come from no older epoch than the entry's (INVALID_PRODUCER_EPOCH) and no older coordinator
than the last marker (TRANSACTION_COORDINATOR_FENCED).

A transaction is *ongoing* until its marker, and *unreplicated* until the marker is below the high watermark. The first
offset of the earliest of either is the first unstable offset; readers under `read_committed` stop there.

Only the appender calls what changes state, after the bytes are written; a check changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.protocol.code_generation.primitives import Buffer
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.records.batch_header import MAX_SEQUENCE, BatchHeader
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, parse_end_txn_marker
from odradek.protocol.records.record_iterator import iter_records

BATCHES_KEPT = 5  # clients have at most five requests in flight, so no older batch can be a retry that matters
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_EPOCH = -1
NO_OFFSET = -1

FOREIGN_PRODUCER_IDS = 1 << 62
"""No cluster hands out ids from here on: it counts from 0, or from 2^40. But a client may write any id, and one at the
end of the range must not use up the others."""

CROWD: Final = 1000
"""So many producers take a millisecond to write down or to look through."""


class AppendedBatch(NamedTuple):
    """A batch as the producer numbered it, and where it went; all inclusive. `timestamp` is the batch's largest."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    """A producer's state in one partition.

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
        """Whether a batch that begins with this sequence goes on where the last one ended."""
        last_sequence = self.batches[-1].last_sequence if self.batches else NO_SEQUENCE
        return first_sequence == (last_sequence + 1) & MAX_SEQUENCE

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> AppendedBatch | None:
        """The kept batch with exactly these sequences, if any."""
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
        """Move to `epoch`; the sequences of another epoch say nothing any more."""
        if epoch != self.epoch:
            self.batches = ()
            self.epoch = epoch


def preceding_sequence(sequence: int, distance: int) -> int:
    """The sequence `distance` before `sequence`; before 0 comes 2^31 - 1."""
    return (sequence - distance) & MAX_SEQUENCE


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended. `last_offset` is that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerState:
    """The producers of one partition, by id. `end_offset` (exclusive) is how far in the log the state reaches.

    `highest_id` is the highest producer id ever met here, also of producers that have expired; -1 without any. Those
    from `FOREIGN_PRODUCER_IDS` on do not count. `is_crowded`: there are more than `CROWD` producers.
    """

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0
        self.highest_id = NO_PRODUCER_ID
        self.is_crowded = False
        self._ongoing: dict[int, int] = {}  # first offset → producer id, in the order of offsets
        self._unreplicated: dict[int, int] = {}  # first offset → offset of the marker

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(list(self.entries.values()))  # a copy: the appender goes on

    def __len__(self) -> int:
        return len(self.entries)

    def load(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Become the state of a snapshot at `end_offset`."""
        self.entries = {entry.producer_id: entry for entry in entries}
        open_transactions = [e for e in self.entries.values() if e.transaction_first_offset != NO_OFFSET]
        open_transactions.sort(key=lambda entry: entry.transaction_first_offset)
        self._ongoing = {entry.transaction_first_offset: entry.producer_id for entry in open_transactions}
        self._unreplicated = {}
        self.end_offset = end_offset
        self.is_crowded = len(self.entries) > CROWD

    def note_id(self, producer_id: int) -> None:
        """A producer id was met."""
        if self.highest_id < producer_id < FOREIGN_PRODUCER_IDS:
            self.highest_id = producer_id

    # -------------------------------------------------------------------------------------------------- data batches

    def check(self, header: BatchHeader, from_client: bool) -> AppendedBatch | None:
        """Judge a data batch that a leader is asked to append: None to take it, the first batch if it is a duplicate.

        Raises `KafkaError` as the module's table says.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return None
        epoch = header.producer_epoch
        if from_client and not (epoch == entry.epoch and entry.is_followed_by(header.base_sequence)):
            duplicate = entry.find_duplicate(epoch, header.base_sequence, header.last_sequence)
            if duplicate is not None:
                return duplicate
            if epoch >= entry.epoch:
                _check_new_sequence(entry, epoch, header.base_sequence)
        if epoch < entry.epoch:
            raise _fenced(header.producer_id, epoch, entry.epoch)
        if entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} is in a transaction, the batch is not"
            )
        return None

    def add_batch(self, header: BatchHeader, base_offset: int) -> None:
        """Take in a data batch with a producer id that was appended at `base_offset`; `header` may still lack it."""
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

    # ------------------------------------------------------------------------------------------------------- markers

    def check_marker(self, header: BatchHeader, marker: EndTxnMarker) -> None:
        """Judge a marker that a leader is asked to append; raises `KafkaError` if it is a zombie's."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.epoch:
            raise _fenced(header.producer_id, header.producer_epoch, entry.epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {header.producer_id}: a marker of coordinator epoch {marker.coordinator_epoch}, "
                f"the last was {entry.coordinator_epoch}",
            )

    def add_marker(self, header: BatchHeader, marker: EndTxnMarker, offset: int) -> CompletedTransaction | None:
        """Take in a marker appended at `offset`; return the transaction that it ends, if there was one.

        The caller writes an aborted one to the transaction index, with `last_stable_offset_after`, and then calls
        `complete`: if the index fails, the transaction must go on looking unstable.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self._new_entry(header.producer_id)
        first_offset = entry.transaction_first_offset
        entry.take_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.transaction_first_offset = NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        return CompletedTransaction(header.producer_id, first_offset, offset, marker.type == ControlRecordType.ABORT)

    def _new_entry(self, producer_id: int) -> ProducerEntry:
        self.note_id(producer_id)
        entry = self.entries[producer_id] = ProducerEntry(producer_id)
        self.is_crowded = len(self.entries) > CROWD
        return entry

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """What the last stable offset will be once `completed` is complete and all is replicated."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """The transaction waits for the high watermark now."""
        del self._ongoing[completed.first_offset]
        self._unreplicated[completed.first_offset] = completed.last_offset

    # -------------------------------------------------------------------------------------------------- transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the earliest transaction begins that is open, or whose marker is not yet replicated."""
        ongoing = next(iter(self._ongoing), None)
        unreplicated = min(self._unreplicated, default=None)
        if ongoing is None or unreplicated is None:
            return unreplicated if ongoing is None else ongoing
        return min(ongoing, unreplicated)

    def replicated_up_to(self, offset: int) -> None:
        """All below `offset` is replicated, or deleted: transactions whose markers are below it are settled."""
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= offset}

    # -------------------------------------------------------------------------------------------------------- expiry

    def ids_in_parts(self, size: int) -> list[list[int]]:
        """The ids of all producers, in lists of at most `size`."""
        rest = iter(self.entries)
        parts = []
        while part := list(islice(rest, size)):
            parts.append(part)
        return parts

    def remove_expired(self, now_ms: int, expiration_ms: int, producer_ids: Iterable[int] | None = None) -> int:
        """Forget producers that are idle for so long and in no transaction; return how many went.

        Only those of `producer_ids` are looked at, if given; ids that are not known any more are passed over.
        """
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
    """What does not go on where the last batch of the same epoch ended must begin a new epoch."""
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


def read_marker(data: Buffer, header: BatchHeader) -> EndTxnMarker | None:
    """The marker in the control batch `data`, or None if it is of another kind or was emptied by compaction."""
    try:
        record = next(iter_records(data, 0, header), None)
        return None if record is None else parse_end_txn_marker(record)
    except RemoteProtocolError:
        return None


def replay_batch(state: ProducerState, header: BatchHeader, marker: EndTxnMarker | None) -> CompletedTransaction | None:
    """Take a batch of the log into `state`; returns the transaction that it ended, still to be completed."""
    completed = None
    if header.has_producer_id:
        if not header.is_control:
            state.add_batch(header, header.base_offset)
        elif marker is not None:
            completed = state.add_marker(header, marker, header.base_offset)
    state.end_offset = header.next_offset
    return completed


def aborted_entry(state: ProducerState, completed: CompletedTransaction) -> AbortedTransaction:
    """What the transaction index says of `completed`, which `state` has not completed yet."""
    return AbortedTransaction(
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        state.last_stable_offset_after(completed),
    )
