"""The accumulator: the records that wait for a request, in a queue of batches for each partition, with bounded memory.

`append` is the hot path of the producer: tasks, timers and awaits exist for batches, not for records. A batch is ready
to be sent when it is full, when `linger_ms` is over, at a flush, or when senders wait for memory.

Memory. Each record is charged the size of its key, value and headers and a constant for its future and its place in the
batch. The charge is released when the batch is finished and its request is over, whichever is later: the bytes stay in
use while a request is in flight, even if the batch has already failed (CVE-2026-35554 was a buffer that was reused too
early). Senders whose records do not fit wait in the order of their calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from odradek.client.config import ProducerConfig
from odradek.client.errors import BufferFullError
from odradek.client.network.outcome import outcome_of
from odradek.client.producer.partition_queue import PartitionQueue, ProducerBatch
from odradek.client.record import RecordMetadata
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import MAX_SEQUENCE
from odradek.protocol.records.record_headers import Header

RECORD_CHARGE = 256
"""Bytes for a record beside its data: an asyncio future of 120 bytes, its slots in two lists, a timestamp of 32 bytes;
rounded up for what a record costs its sender."""

_PAUSE_SECONDS = 0.005
"""The longest wait of `throttle`. Most brokers respond sooner, so the memory in use stays small; and a producer that
means to fill `buffer_memory` is not delayed for long."""

MAX_RECORD_OVERHEAD = 36
"""The most bytes of a record besides key, value and headers: the attributes and seven varints."""

_HEADER_OVERHEAD = 10  # two varints a header


class RecordAccumulator:
    """The unfinished batches of one producer.

    `ready` holds the queues with a batch to send, the longest waiting first. `on_ready` is called after one was added,
    `on_expired` with each batch whose delivery timeout has passed. `charged` is the memory in use. `waiting` has a
    future for each sender that waits for memory, in their order.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self.ready: dict[PartitionQueue, None] = {}
        self.on_ready: Callable[[], None] = lambda: None
        self.on_expired: Callable[[ProducerBatch], None] = lambda _: None
        self.incomplete: dict[ProducerBatch, None] = {}
        self.charged = 0
        self._charged_at_yield = 0  # when a sender last yielded to the event loop
        self._config = config
        self._is_transactional = config.transactional_id is not None
        self._batch_limit = config.batch_size - MAX_RECORD_OVERHEAD
        self._buffer_memory = config.buffer_memory
        self._linger = config.linger_ms / 1000
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._new_future = self._loop.create_future

    async def wait_for_memory(self, size: int) -> None:
        """Wait until a record of `size` bytes fits, for `max_block_ms`. Raises BufferFullError.

        A record larger than `buffer_memory` fits when nothing else is charged.
        """
        turn: asyncio.Future[None] = self._loop.create_future()
        self.waiting.append(turn)
        if len(self.waiting) == 1:
            self.end_all_lingers()  # new batches do not linger either while a sender waits
        try:
            async with asyncio.timeout(self._config.max_block_ms / 1000):
                while not (self.waiting[0] is turn and self._fits(size)):
                    await turn
                    turn = self.waiting[0] = self._loop.create_future()
        except TimeoutError:
            raise BufferFullError(
                "send a record",
                f"buffer_memory of {self._config.buffer_memory} bytes was full for {self._config.max_block_ms} ms",
                "Send more slowly, or raise buffer_memory or max_block_ms",
            ) from None
        finally:
            self.waiting.remove(turn)
            self._wake_next_waiter()

    def should_yield(self) -> bool:
        """Whether records of `batch_size` bytes were added, to any partitions, since a sender last yielded."""
        self._charged_at_yield = min(self._charged_at_yield, self.charged)
        return self.charged >= self._charged_at_yield + self._config.batch_size

    async def throttle(self, queue: PartitionQueue) -> None:
        """Yield to the event loop, and wait up to 5 ms for the leader of a queue that is far behind.

        A queue is behind if more batches wait in it than requests may be in flight. Batches that are appended faster
        than they are sent do not arrive earlier but take memory: without this, a producer of 1 KiB records had up to
        60 MB resident; with it 32 MB, at the same rate.
        """
        await asyncio.sleep(0)
        if len(queue.closed) > self._config.max_in_flight:
            oldest = queue.in_flight[0] if queue.in_flight else queue.closed[0]
            await asyncio.wait((oldest.finished,), timeout=_PAUSE_SECONDS)
        self._charged_at_yield = self.charged

    def append(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        size: int,
    ) -> asyncio.Future[RecordMetadata] | None:
        """Append a record and return the future of its metadata, or None if there is no memory for it.

        `size` is that of key, value and headers (`headers_size`). A sender that has not passed `wait_for_memory` may
        call this only while no other waits. Raises LocalProtocolError for a record that the format cannot represent,
        TypeError for one that is not bytes.
        """
        charge = size + RECORD_CHARGE
        if self.charged + charge > self._buffer_memory and self.charged:
            return None
        batch = queue.open
        if batch is None or batch.filled + size > self._batch_limit:
            batch = self._open_batch(queue)
        try:
            batch.filled = batch.builder.append(timestamp, key, value, headers)
        except Exception:
            if not batch.futures:
                self._discard_empty(batch)
            raise
        future: asyncio.Future[RecordMetadata] = self._new_future()
        batch.futures.append(future)
        batch.timestamps.append(timestamp)
        batch.charge += charge
        self.charged += charge
        return future

    def end_all_lingers(self) -> None:
        """Make every open batch ready to be sent."""
        for batch in self.incomplete:
            if batch.queue.open is batch:
                self._end_linger(batch)

    def update_ready(self, queue: PartitionQueue) -> None:
        """Add a queue to the ready ones, or remove it, as its batches require."""
        if queue.is_ready():
            self.ready[queue] = None
            self.on_ready()
        else:
            self.ready.pop(queue, None)

    def requeue(self, queue: PartitionQueue) -> None:
        """Move a ready queue, one of whose batches was taken, behind the others; remove it if it has none left."""
        del self.ready[queue]
        if queue.is_ready():
            self.ready[queue] = None

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a completed or failed batch; `release_memory` releases its charge."""
        self.incomplete.pop(batch, None)

    def release_memory(self, batch: ProducerBatch) -> None:
        """Release the charge of a batch, which is finished and in no request."""
        self.charged -= batch.charge
        batch.charge = 0
        self._wake_next_waiter()

    async def flush(self) -> None:
        """Send everything now, and wait until every record appended before is acknowledged or has failed."""
        self.end_all_lingers()
        for batch in list(self.incomplete):
            await _finished(batch)

    def _fits(self, size: int) -> bool:
        return not self.charged or self.charged + size + RECORD_CHARGE <= self._buffer_memory

    def _wake_next_waiter(self) -> None:
        if self.waiting and not self.waiting[0].done():
            self.waiting[0].set_result(None)

    def split_part(self, whole: ProducerBatch, index: int) -> ProducerBatch:
        """Create an empty batch for the records of another from `index` on, with their sequences and expiry."""
        order, first = whole.position
        part = self._new_batch(whole.queue, (order, first + index))
        part.may_be_written = whole.may_be_written
        if whole.base_sequence >= 0:
            part.base_sequence = (whole.base_sequence + index) & MAX_SEQUENCE
        assert whole.expiry is not None
        part.expiry = self._loop.call_at(whole.expiry.when(), self.on_expired, part)
        return part

    def _new_batch(self, queue: PartitionQueue, position: tuple[int, int]) -> ProducerBatch:
        builder = BatchBuilder(
            self._config.codec, self._config.compression_level, is_transactional=self._is_transactional
        )
        batch = ProducerBatch(queue, builder, position, self._loop.create_future())
        self.incomplete[batch] = None
        return batch

    def _open_batch(self, queue: PartitionQueue) -> ProducerBatch:
        if queue.open is not None:
            queue.close_open()
            self.update_ready(queue)
        batch = queue.open = self._new_batch(queue, queue.next_position())
        batch.expiry = self._loop.call_later(self._config.delivery_timeout_ms / 1000, self.on_expired, batch)
        if self._linger and not self.waiting:
            batch.linger = self._loop.call_later(self._linger, self._end_linger, batch)
        else:
            self._end_linger(batch)
        return batch

    def _end_linger(self, batch: ProducerBatch) -> None:
        batch.is_ready_to_send = True
        self.update_ready(batch.queue)

    def _discard_empty(self, batch: ProducerBatch) -> None:
        """Discard a batch whose first record was refused."""
        batch.queue.open = None
        self.update_ready(batch.queue)
        batch.complete(-1, -1)
        self.remove(batch)


async def _finished(batch: ProducerBatch) -> None:
    await outcome_of(batch.finished)
    for part in batch.parts:
        await _finished(part)


def headers_size(headers: Sequence[Header]) -> int:
    """An upper bound of the bytes of a record's headers."""
    size = 0
    for name, value in headers:
        size += 4 * len(name) + _HEADER_OVERHEAD + (len(value) if value is not None else 0)
    return size
