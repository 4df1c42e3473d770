"""Send encoded batches to the leaders of their partitions, each once and in order.

```
send() ──► a queue for each partition ──► one batch of each queue in flight ──► acknowledged by all in-sync replicas
                     ▲                                   │
                     └── retriable error, or no response ┘   retry with the same bytes and new metadata
```
Idempotence (KIP-98): the cluster assigns a producer id, and the records of each partition have sequence numbers. A
leader that already has a batch answers DUPLICATE_SEQUENCE_NUMBER, which counts as a success. Only one batch of a
partition is in flight, so no later batch can overtake an attempt without a response: nothing is duplicated or
reordered.

There is no thread: the event loop runs only inside calls. `send` writes the request before it returns; the response
arrives while the next batch is encoded. `MAX_UNACKNOWLEDGED_BYTES` bounds what is encoded and not acknowledged.

When a task fails, the records that it wrote remain, and its retry writes all of them again under another producer id:
at least once, as with Spark's connector.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.client.errors import ClientError, DeliveryTimeoutError, RecordTooLargeError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.producer.producer_id import init_producer_id
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import BlockingClient
from odradek.pipeline.options.broker_options import WriteOptions
from odradek.pipeline.records.encoding import halves
from odradek.protocol.api import PRODUCE_KEY
from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    LAST_VERSION_WITH_TOPIC_NAMES,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records.batch_header import MAX_SEQUENCE, read_batch_header
from odradek.protocol.schema import LAST_VERSION, ZERO_UUID

_ALL_IN_SYNC: Final = -1
_OPERATION: Final = "send records"
_SUCCESSES: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})

MAX_UNACKNOWLEDGED_BYTES: Final = 8 << 20

Encode = Callable[[int, int, int], Buffer]
"""Encodes a record batch with a producer id, its epoch, and the sequence number of the first record."""


class _PartitionQueue:
    """The next sequence number of a partition, and the lock that keeps its batches in order."""

    def __init__(self) -> None:
        self.next_sequence = 0
        self.lock = asyncio.Lock()


class Delivery:
    """A producer for blocking code in one thread: any number of `send`, `flush`, `close`.

    It uses a client that the caller closes. Methods raise ClientError, also for batches that were sent earlier.
    """

    def __init__(self, options: WriteOptions, client: BlockingClient) -> None:
        self._options = options
        self._config = client.config
        self._client = client
        self._cluster = client.cluster
        self._queues: dict[TopicPartition, _PartitionQueue] = {}
        self._pending: deque[tuple[asyncio.Task[None], int]] = deque()
        self._pending_bytes = 0
        self._producer_id = client.run(init_producer_id(self._cluster, self._config, options.cluster.timeout_ms))

    def close(self) -> None:
        """Cancel the batches that are not acknowledged."""
        self._client.run(self._close())

    def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic. Brokers may create it automatically. Raises UnknownTopicError."""
        known = self._client.run(self._cluster.topic(topic, self._options.cluster.timeout_ms))
        return len(known.partitions)

    def send(self, partition: TopicPartition, count: int, encode: Encode) -> None:
        """Send `count` records, all with one timestamp, after the earlier ones of the partition; wait for room."""
        self._client.run(self._send(partition, count, encode))

    def flush(self) -> None:
        """Wait until all batches are acknowledged."""
        self._client.run(self._wait_for_room(0))

    async def _close(self) -> None:
        for task, _ in self._pending:
            task.cancel()
        await asyncio.gather(*(task for task, _ in self._pending), return_exceptions=True)

    async def _send(self, partition: TopicPartition, count: int, encode: Encode) -> None:
        queue = self._queues.setdefault(partition, _PartitionQueue())
        base_sequence = queue.next_sequence
        queue.next_sequence = (base_sequence + count) & MAX_SEQUENCE
        records = encode(self._producer_id, 0, base_sequence)
        task = asyncio.create_task(self._deliver(queue, partition, records))
        self._pending.append((task, len(records)))
        self._pending_bytes += len(records)
        await asyncio.sleep(0)  # lets the task write its request, unless another one holds the lock
        await self._wait_for_room(MAX_UNACKNOWLEDGED_BYTES)

    async def _wait_for_room(self, size: int) -> None:
        """Wait until at most `size` bytes are pending. Raises the error of a batch that failed."""
        while self._pending and (self._pending_bytes > size or self._pending[0][0].done()):
            task, task_size = self._pending.popleft()
            self._pending_bytes -= task_size
            await task

    async def _deliver(self, queue: _PartitionQueue, partition: TopicPartition, records: Buffer) -> None:
        async with queue.lock:
            await self._attempt(partition, records)

    async def _attempt(self, partition: TopicPartition, records: Buffer) -> None:
        """Send a batch, and retry until it is in the log; as two halves if it is too large for the topic."""
        backoff = Backoff(self._config.retry_backoff_ms / 1000, self._config.retry_backoff_max_ms / 1000)
        deadline = asyncio.get_running_loop().time() + self._options.delivery_timeout_ms / 1000
        while True:
            try:
                await self._request(partition, records)
                return
            except RecordTooLargeError:
                if read_batch_header(records).records_count == 1:
                    raise
                break
            except ClientError as error:
                if not error.retriable:
                    raise
                if asyncio.get_running_loop().time() > deadline:
                    raise _timeout(partition, self._options.delivery_timeout_ms, error) from error
            await asyncio.sleep(backoff.next())
            await self._refresh()
        for half in halves(records, self._options.compression_level):
            await self._attempt(partition, half)

    async def _request(self, partition: TopicPartition, records: Buffer) -> None:
        name, index = partition
        topic = await self._cluster.topic(name, self._options.cluster.timeout_ms)
        leader = self._cluster.leader(name, index)
        if leader is None:
            raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, _OPERATION, topic=name, partition=index)
        connection = await self._cluster.connection(leader)
        has_id = topic.topic_id != ZERO_UUID
        version = connection.versions.highest(PRODUCE_KEY, LAST_VERSION if has_id else LAST_VERSION_WITH_TOPIC_NAMES)
        data = TopicProduceData(name, topic.topic_id, [PartitionProduceData(index, records)])
        request = ProduceRequest(None, _ALL_IN_SYNC, self._config.request_timeout_ms, [data])
        response = await connection.send(request, ProduceResponse, version=version)
        for topic_row in response.responses:
            for row in topic_row.partition_responses:
                if row.error_code not in _SUCCESSES:
                    raise broker_error(
                        row.error_code,
                        _OPERATION,
                        row.error_message,
                        broker=connection.name,
                        topic=name,
                        partition=index,
                    )

    async def _refresh(self) -> None:
        try:
            await self._cluster.refresh()
        except ClientError as error:
            if not error.retriable:
                raise


def _timeout(partition: TopicPartition, timeout_ms: int, error: ClientError) -> DeliveryTimeoutError:
    return DeliveryTimeoutError(
        _OPERATION,
        f"not acknowledged within {timeout_ms} ms; the last attempt: {error}",
        "The log may contain them",
        topic=partition.topic,
        partition=partition.partition,
    )
