"""Send encoded batches to the leaders of their partitions, each once and in order: what a task writes with.

```
send() ──► waiting, a lane for each partition ──► one batch of each lane in flight ──► acknowledged by all in sync
                          ▲                                    │
                          └──── error that may pass, no answer ┘   the same bytes again, from new metadata
```
Idempotence (KIP-98). A producer has an id, asked of the cluster, and numbers the records of each partition; a leader
that has a batch already says so, and that is a success. With one batch of a partition in flight, an attempt that got no
answer cannot be overtaken by a later batch, so nothing is doubled or reordered, whatever is lost on the way.

There is no thread: the event loop runs only inside of calls. A request is written before `send` returns, and answered
while the next batch is encoded. `MAX_WAITING_BYTES` bound what is encoded and not acknowledged.

A task that fails takes its producer id with it. What it wrote stays, and the task that repeats it writes all of it
again under another id: at least once, as with Spark's connector.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.client.errors import ClientError, DeliveryTimeoutError, RecordTooLargeError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster as ClientCluster
from odradek.client.network.connection import TcpNetwork
from odradek.client.producer.producer_id import init_producer_id
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import EventLoop
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
_TRIED: Final = "send records"
_DONE: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})

MAX_WAITING_BYTES: Final = 8 << 20

Encode = Callable[[int, int, int], Buffer]
"""Makes a record batch for a producer id, its epoch, and the sequence of the first record."""


class _Lane:
    """A partition: the sequence that its next record gets, and whose turn it is."""

    def __init__(self) -> None:
        self.next_sequence = 0
        self.turn = asyncio.Lock()


class Delivery:
    """A producer for blocking code, of one thread: `open`, `send` as often as need be, `flush`, `close`.

    Methods raise ClientError, for whatever was sent before too.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._config = options.cluster.client_config()
        self._loop = EventLoop()
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._under_way: deque[tuple[asyncio.Task[None], int]] = deque()
        self._waiting_bytes = 0
        self._producer_id = -1
        self._cluster: ClientCluster

    def open(self) -> None:
        self._loop.run(self._open())

    def close(self) -> None:
        self._loop.run(self._close())
        self._loop.close()

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has; it is created first, if the brokers do so. Raises UnknownTopicError."""
        known = self._loop.run(self._cluster.topic(topic, self._options.max_block_ms))
        return len(known.partitions)

    def send(self, partition: TopicPartition, count: int, encode: Encode) -> None:
        """Write `count` records after all that were sent to this partition before; wait if too much is under way.

        They have one timestamp.
        """
        self._loop.run(self._send(partition, count, encode))

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        self._loop.run(self._wait_for_room(0))

    async def _open(self) -> None:
        self._cluster = ClientCluster(self._config, TcpNetwork(), creates_topics=True)
        await self._cluster.start()
        self._producer_id = await init_producer_id(self._cluster, self._config, self._options.max_block_ms)

    async def _close(self) -> None:
        for task, _ in self._under_way:
            task.cancel()
        await asyncio.gather(*(task for task, _ in self._under_way), return_exceptions=True)
        await self._cluster.close()

    async def _send(self, partition: TopicPartition, count: int, encode: Encode) -> None:
        lane = self._lanes.setdefault(partition, _Lane())
        base_sequence = lane.next_sequence
        lane.next_sequence = (base_sequence + count) & MAX_SEQUENCE
        records = encode(self._producer_id, 0, base_sequence)
        task = asyncio.create_task(self._deliver(lane, partition, records))
        self._under_way.append((task, len(records)))
        self._waiting_bytes += len(records)
        await asyncio.sleep(0)  # the task writes its request, if it is its turn
        await self._wait_for_room(MAX_WAITING_BYTES)

    async def _wait_for_room(self, size: int) -> None:
        """Wait until at most `size` bytes are under way, and take note of what is done."""
        while self._under_way and (self._waiting_bytes > size or self._under_way[0][0].done()):
            task, its_size = self._under_way.popleft()
            self._waiting_bytes -= its_size
            await task

    async def _deliver(self, lane: _Lane, partition: TopicPartition, records: Buffer) -> None:
        async with lane.turn:
            await self._attempt(partition, records)

    async def _attempt(self, partition: TopicPartition, records: Buffer) -> None:
        """Send a batch until it is in the log; in two halves if it is too large for the topic."""
        backoff = Backoff(self._config.retry_backoff_ms / 1000, self._config.retry_backoff_max_ms / 1000)
        deadline = asyncio.get_running_loop().time() + self._options.delivery_timeout_ms / 1000
        while True:
            try:
                await self._ask(partition, records)
                return
            except RecordTooLargeError:
                if read_batch_header(records).records_count == 1:
                    raise
                break
            except ClientError as error:
                if not error.retriable:
                    raise
                if asyncio.get_running_loop().time() > deadline:
                    raise _too_late(partition, self._options.delivery_timeout_ms, error) from error
            await asyncio.sleep(backoff.next())
            await self._refresh()
        for half in halves(records, self._options.compression_level):
            await self._attempt(partition, half)

    async def _ask(self, partition: TopicPartition, records: Buffer) -> None:
        name, index = partition
        topic = await self._cluster.topic(name, self._options.max_block_ms)
        leader = self._cluster.leader(name, index)
        if leader is None:
            raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, _TRIED, topic=name, partition=index)
        connection = await self._cluster.connection(leader)
        has_id = topic.topic_id != ZERO_UUID
        version = connection.versions.highest(PRODUCE_KEY, LAST_VERSION if has_id else LAST_VERSION_WITH_TOPIC_NAMES)
        data = TopicProduceData(name, topic.topic_id, [PartitionProduceData(index, records)])
        request = ProduceRequest(None, _ALL_IN_SYNC, self._config.request_timeout_ms, [data])
        answer = await connection.send(request, ProduceResponse, version=version)
        for told in answer.responses:
            for row in told.partition_responses:
                if row.error_code not in _DONE:
                    raise broker_error(
                        row.error_code, _TRIED, row.error_message, broker=connection.name, topic=name, partition=index
                    )

    async def _refresh(self) -> None:
        try:
            await self._cluster.refresh()
        except ClientError as error:
            if not error.retriable:
                raise


def _too_late(partition: TopicPartition, timeout_ms: int, error: ClientError) -> DeliveryTimeoutError:
    return DeliveryTimeoutError(
        _TRIED,
        f"not acknowledged within {timeout_ms} ms; the last attempt: {error}",
        "They may be in the log or not",
        topic=partition.topic,
        partition=partition.partition,
    )
