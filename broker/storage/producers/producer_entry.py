"""What one partition knows of one idempotent producer: its epoch, and the last five batches that it wrote (KIP-98)."""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.records.batch_header import MAX_SEQUENCE

BATCHES_KEPT = 5  # clients have at most five requests in flight, so no older batch can be a retry that matters
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_EPOCH = -1
NO_OFFSET = -1

FOREIGN_PRODUCER_IDS = 1 << 62
"""No cluster hands out ids from here on: it counts from 0, or from 2^40. But a client may write any id, and one at the
end of the range must not use up the others."""


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
