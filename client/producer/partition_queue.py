"""The batches of one partition that are not acknowledged yet, in the order in which their records were sent.

```
send() --> open --> closed ------> in flight --> finished
            |         ^  in order      |
            |         +---- retry -----+
            +--> expired: finished, with an error
```
Only the newest batch is open: records may be added to it. `closed` holds the batches that wait for a request, oldest
first; batches to retry precede those that were never sent. `in_flight` holds the batches whose request is in flight.

Idempotence (KIP-98). Each partition has its own sequence numbers, with the producer's id and an epoch of the partition.
A batch gets its sequence when it is first sent and keeps it for retries, so that the leader recognises a duplicate. A
leader accepts any first sequence of a producer that is new to it. Therefore batches are sent one by one until it has
acknowledged one: of several, it could refuse the first ("not ready yet") and accept the second. If a batch fails
without having been written, the leader refuses every later sequence. Then, with nothing in flight, the epoch is bumped
and the waiting batches are renumbered from 0 (`restart_sequence`), except those that may be in the log (`delivery`).
Differs from Kafka: the epoch is bumped for this partition alone, not for the whole producer, because only the leaders
store the epochs of an idempotent producer.

The leader recognises only the last five batches of a producer (Kafka's ProducerStateEntry.NUM_BATCHES_TO_RETAIN). So a
new batch waits until the oldest one in flight is at most the fourth before it. Requests to one leader are answered in
their order and are no more than five; only after the leader has moved can one be older, which the new leader would
refuse if it had to be sent again.

A transactional producer has one id and epoch for all partitions, which its coordinator assigns (`set_producer`).
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Sequence
from itertools import count, repeat

from odradek.client.errors import ClientError
from odradek.client.network.backoff import Backoff
from odradek.client.record import RecordMetadata
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import MAX_SEQUENCE

_REMEMBERED_BATCHES = 5
"""The batches of a producer id that a leader recognises as duplicates."""
MAX_EPOCH = 32766
"""The last epoch of a producer id; Kafka reserves 32767 for fencing."""


class ProducerBatch:
    """Records of one partition that are sent together.

    `futures` and `timestamps` have one element for each record. `records` is the encoded batch, from its first request
    on: a buffer that is never changed; a renumbered batch is encoded into a new one.
    """

    __slots__ = (
        "base_sequence",
        "builder",
        "charge",
        "expiry",
        "failure",
        "filled",
        "finished",
        "futures",
        "is_ready_to_send",
        "linger",
        "may_be_written",
        "number",
        "parts",
        "position",
        "queue",
        "records",
        "timestamps",
    )

    def __init__(
        self,
        queue: PartitionQueue,
        builder: BatchBuilder,
        position: tuple[int, int],
        finished: asyncio.Future[None],
    ) -> None:
        self.queue = queue
        self.builder = builder
        self.position = position  # sorts batches: the batch's number, and an index in it after a split
        self.futures: list[asyncio.Future[RecordMetadata]] = []
        self.timestamps: list[int] = []
        self.filled = 0  # bytes of the batch so far, before compression
        self.charge = 0  # bytes of buffer_memory that it holds
        self.is_ready_to_send = False  # open, but it no longer waits for more records
        self.linger: asyncio.TimerHandle | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self.failure: ClientError | None = None  # of the last attempt
        self.may_be_written = False  # by an attempt whose result is not known
        self.finished = finished
        self.parts: Sequence[ProducerBatch] = ()
        self.number = 0  # counts the batches of the queue in the order in which they were first sent
        self.base_sequence = -1
        self.records: bytearray | None = None

    @property
    def was_sent(self) -> bool:
        return self.records is not None

    @property
    def size(self) -> int:
        """Bytes of the batch in a request; an upper bound until it is encoded."""
        return self.builder.size_estimate if self.records is None else len(self.records)

    def encode(self, producer_id: int, producer_epoch: int) -> None:
        """Encode the batch with its sequence and these numbers, all -1 without idempotence."""
        builder = self.builder
        builder.producer_id = producer_id
        builder.producer_epoch = producer_epoch
        builder.base_sequence = self.base_sequence
        self.records = builder.build()

    def complete(self, base_offset: int, log_append_time: int) -> None:
        """Set the metadata of every record; -1 stands for an unknown offset, and for the records' own timestamps."""
        offsets = count(base_offset) if base_offset >= 0 else repeat(-1)
        timestamps = self.timestamps if log_append_time < 0 else repeat(log_append_time)
        new = tuple.__new__
        topic, partition = self.queue.topic, self.queue.partition
        for future, offset, timestamp in zip(
            self.futures, offsets, timestamps, strict=False
        ):  # some repeat without end
            if not future.done():
                future.set_result(new(RecordMetadata, (topic, partition, offset, timestamp)))
        self._finish()

    def fail(self, error: Exception) -> None:
        """Set the error on the future of every record."""
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # asyncio need not log it: the failed batch is logged once
        self._finish()

    def split_into(self, parts: Sequence[ProducerBatch]) -> None:
        """Finish this batch in favour of its parts."""
        self.parts = parts
        self._finish()

    def _finish(self) -> None:
        for timer in (self.linger, self.expiry):
            if timer is not None:
                timer.cancel()
        if not self.finished.done():
            self.finished.set_result(None)


class PartitionQueue:
    """The batches of one partition; see the module's docstring for their states and for sequences."""

    __slots__ = (
        "_batches",
        "_most_ahead",
        "_sent",
        "backoff",
        "closed",
        "failure",
        "in_flight",
        "is_backing_off",
        "is_known_to_leader",
        "needs_restart",
        "next_sequence",
        "open",
        "partition",
        "producer_epoch",
        "producer_id",
        "topic",
    )

    def __init__(self, topic: str, partition: int, *, is_idempotent: bool) -> None:
        self.topic = topic
        self.partition = partition
        self.is_known_to_leader = (
            not is_idempotent
        )  # the leader has acknowledged a batch of our producer id, if we have one
        self.open: ProducerBatch | None = None
        self.closed: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.backoff: Backoff | None = None  # after a failure, until the next success
        self.failure: ClientError | None = None  # the last one, until the next success
        self.is_backing_off = False  # after a failure nothing is sent for a while
        self.producer_id = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        self.needs_restart = False
        self._batches = 0
        self._sent = 0
        self._most_ahead = _REMEMBERED_BATCHES - 1 if is_idempotent else sys.maxsize

    def next_position(self) -> tuple[int, int]:
        """The position of a new batch."""
        self._batches += 1
        return self._batches, 0

    def is_ready(self) -> bool:
        """Whether a batch waits for a request."""
        return bool(self.closed) or (self.open is not None and self.open.is_ready_to_send)

    def head(self) -> ProducerBatch | None:
        """The batch to send next, if one may be sent now.

        A retried batch is sent alone: the sequences after it are valid only if it succeeds. So the first in flight is
        the oldest.
        """
        if self.in_flight and (self.needs_restart or not self.is_known_to_leader):
            return None
        if self.closed and (head := self.closed[0]).was_sent:
            return None if self.in_flight else head
        if self.in_flight and self._sent - self.in_flight[0].number >= self._most_ahead:
            return None
        if self.closed:
            return self.closed[0]
        return self.open if self.open is not None and self.open.is_ready_to_send else None

    def take(self) -> ProducerBatch:
        """Move the head to the batches in flight."""
        if not self.closed:
            self.close_open()
        batch = self.closed.popleft()
        if not batch.was_sent:
            self._sent += 1
            batch.number = self._sent
        self.in_flight.append(batch)
        return batch

    def close_open(self) -> None:
        """Close the open batch, if there is one, to further records."""
        if self.open is not None:
            self.closed.append(self.open)
            self.open = None

    def reenqueue(self, batch: ProducerBatch) -> None:
        """Insert a batch that is no longer in flight among the closed ones, in its old place."""
        at = 0
        for waiting in self.closed:
            if waiting.position > batch.position:
                break
            at += 1
        self.closed.insert(at, batch)

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether no unfinished batch precedes this one."""
        return all(batch.position <= other.position for other in (*self.in_flight, *self.closed))

    def remove(self, batch: ProducerBatch) -> None:
        """Remove an unfinished batch from the open and closed ones."""
        if self.open is batch:
            self.open = None
        elif batch in self.closed:
            self.closed.remove(batch)

    def assign_sequence(self, batch: ProducerBatch) -> None:
        """Assign its sequence to a batch that is sent for the first time."""
        batch.base_sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.builder.records_count) & MAX_SEQUENCE

    def set_producer(self, producer_id: int, producer_epoch: int) -> None:
        """Continue with this id and epoch, and with sequence 0. The batch that is taken now is the first with them."""
        if producer_id != self.producer_id:
            self.is_known_to_leader = False
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.next_sequence = 0

    def restart_sequence(self, producer_id: int) -> None:
        """Renumber all waiting batches from 0, with the next epoch or a new producer id.

        The caller ensures that nothing is in flight and that no waiting batch may be written.
        """
        assert not self.in_flight, "a batch in flight may still be written with its old sequence"
        if producer_id == self.producer_id:
            self.producer_epoch += 1
        else:
            self.producer_id, self.producer_epoch = producer_id, 0
            self.is_known_to_leader = False
        self.next_sequence = 0
        self.needs_restart = False
        for batch in self.closed:
            batch.records = None
            batch.base_sequence = -1
