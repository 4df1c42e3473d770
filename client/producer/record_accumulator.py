"""Where records wait to be sent: a queue of batches for each partition, under one bound on their memory.

`append` is the hot path of the producer: no task, no timer and no await for a record, only for a batch. A batch is
ready to be sent when it is full, when it has lingered, when somebody flushes, or when senders wait for memory.

Memory. Every record is charged its key, value and headers and a constant for its future and its place in the batch.
The charge comes back when the batch is finished and its request is over, whichever is later: while a request is under
way its bytes are still in use, also if the batch has been given up (CVE-2026-35554 was a buffer that was used again
before). Senders for whose record there is no room wait in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from odradek.client.config import ProducerConfig
from odradek.client.errors import BufferFullError
from odradek.client.producer.partition_queue import PartitionQueue, ProducerBatch
from odradek.client.record import RecordMetadata
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import MAX_SEQUENCE
from odradek.protocol.records.record_headers import Header

RECORD_CHARGE = 256
"""Bytes for a record beside its data: an asyncio future of 120 bytes, its slots in two lists, a timestamp of 32 bytes;
rounded up for what the record costs the sender who waits for it."""

_PAUSE_SECONDS = 0.005
"""How long `throttle` waits at most: for most brokers longer than it takes to answer, so that the memory in use stays
small; too short to hold up for long who would rather fill `buffer_memory`."""

MAX_RECORD_OVERHEAD = 36
"""Bytes that a record takes at most beside key, value and headers: attributes and the seven varints around them."""

_HEADER_OVERHEAD = 10  # two varints a header


class RecordAccumulator:
    """The batches of one producer that are not finished yet.

    `ready` are the queues with something to send, longest waiting first; `on_ready` is called when one was added,
    `on_expired` with each batch whose delivery timeout has passed. `charged` is the memory in use, `waiting` are those
    who wait for some, in their order, each with a future for its turn.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self.ready: dict[PartitionQueue, None] = {}
        self.on_ready: Callable[[], None] = lambda: None
        self.on_expired: Callable[[ProducerBatch], None] = lambda _: None
        self.incomplete: dict[ProducerBatch, None] = {}
        self.charged = 0
        self._charged_at_yield = 0  # when a sender last gave way
        self._config = config
        self._batch_limit = config.batch_size - MAX_RECORD_OVERHEAD
        self._buffer_memory = config.buffer_memory
        self._linger = config.linger_ms / 1000
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._new_future = self._loop.create_future

    async def wait_for_memory(self, size: int) -> None:
        """Wait until a record of `size` bytes fits in, for `max_block_ms`. Raises BufferFullError.

        A record larger than the bound fits in alone.
        """
        turn: asyncio.Future[None] = self._loop.create_future()
        self.waiting.append(turn)
        if len(self.waiting) == 1:
            self.end_all_lingers()  # while somebody waits, new batches do not linger either
        try:
            async with asyncio.timeout(self._config.max_block_ms / 1000):
                while not (self.waiting[0] is turn and self._fits(size)):
                    await turn
                    turn = self.waiting[0] = self._loop.create_future()
        except TimeoutError:
            raise BufferFullError(
                "send a record",
                f"buffer_memory of {self._config.buffer_memory} bytes was full for {self._config.max_block_ms} ms",
                "The brokers take records more slowly than they are sent",
            ) from None
        finally:
            self.waiting.remove(turn)
            self._wake_next_waiter()

    def should_yield(self) -> bool:
        """Whether records of a batch's size were added since the sender last gave way, to whatever partitions."""
        self._charged_at_yield = min(self._charged_at_yield, self.charged)
        return self.charged >= self._charged_at_yield + self._config.batch_size

    async def throttle(self, queue: PartitionQueue) -> None:
        """Let the loop send and receive, and wait a moment for the leader of a queue that is far behind.

        Behind is a queue with more waiting batches than requests may be under way. Batches that are appended faster
        than they are sent do not arrive earlier, and take memory: a producer of 1 KiB records had up to 60 MB resident,
        and has 32 with this, at the same rate.
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
        """Add a record and return the future of its place in the log.

        `size` is that of key, value and headers (`headers_size`). None if there is no room for it; only after
        `wait_for_memory` may it overtake those who wait. Raises LocalProtocolError for a record that the format cannot
        carry, TypeError for one that is not bytes.
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
        """Let no open batch linger."""
        for batch in self.incomplete:
            if batch.queue.open is batch:
                self._end_linger(batch)

    def update_ready(self, queue: PartitionQueue) -> None:
        """Put a queue among the ready ones, or take it from there, as its batches say."""
        if queue.is_ready():
            self.ready[queue] = None
            self.on_ready()
        else:
            self.ready.pop(queue, None)

    def requeue(self, queue: PartitionQueue) -> None:
        """A batch of a ready queue was taken: what is left of it waits behind the others."""
        del self.ready[queue]
        if queue.is_ready():
            self.ready[queue] = None

    def finished(self, batch: ProducerBatch) -> None:
        """Forget a batch that was settled or failed; its charge comes back with `release_memory`."""
        self.incomplete.pop(batch, None)

    def release_memory(self, batch: ProducerBatch) -> None:
        """Give the memory of a batch back; it is finished and no request carries it."""
        self.charged -= batch.charge
        batch.charge = 0
        self._wake_next_waiter()

    async def flush(self) -> None:
        """Wait until every record appended before is acknowledged or has failed."""
        self.end_all_lingers()
        for batch in list(self.incomplete):
            await _finished(batch)

    def _fits(self, size: int) -> bool:
        return not self.charged or self.charged + size + RECORD_CHARGE <= self._buffer_memory

    def _wake_next_waiter(self) -> None:
        if self.waiting and not self.waiting[0].done():
            self.waiting[0].set_result(None)

    def split_part(self, whole: ProducerBatch, index: int) -> ProducerBatch:
        """An empty batch for the records of another from `index` on, with their sequences and their time left."""
        order, first = whole.position
        split_part = self._new_batch(whole.queue, (order, first + index))
        split_part.may_be_written = whole.may_be_written
        if whole.base_sequence >= 0:
            split_part.base_sequence = (whole.base_sequence + index) & MAX_SEQUENCE
        assert whole.expiry is not None
        split_part.expiry = self._loop.call_at(whole.expiry.when(), self.on_expired, split_part)
        return split_part

    def _new_batch(self, queue: PartitionQueue, position: tuple[int, int]) -> ProducerBatch:
        builder = BatchBuilder(self._config.codec, self._config.compression_level)
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
        """The first record of a batch was refused."""
        batch.queue.open = None
        self.update_ready(batch.queue)
        batch.complete(-1, -1)
        self.finished(batch)


async def _finished(batch: ProducerBatch) -> None:
    await asyncio.shield(batch.finished)
    for split_part in batch.parts:
        await _finished(split_part)


def headers_size(headers: Sequence[Header]) -> int:
    """Bytes of a record's headers: an upper bound, like MAX_RECORD_OVERHEAD for what else is around key and value."""
    size = 0
    for name, value in headers:
        size += 4 * len(name) + _HEADER_OVERHEAD + (len(value) if value is not None else 0)
    return size
