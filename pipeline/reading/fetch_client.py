"""Fetch from the leader of one partition, one request ahead of the reader.

```
task                                     broker
Fetch offset 0      ──────────────────►
                    ◄──────────────────  batches 0–99
Fetch offset 100    ──────────────────►
decode 0–99, pass them to Spark                    meanwhile the response arrives in the socket's buffer
                    ◄──────────────────  batches 100–199
```
There is no thread: the event loop runs only while a task waits for a response, and the next request is written before
the wait. A task therefore holds one response, and of the next one what the kernel's buffers hold.

| response | reaction |
|---|---|
| batches | yield them, with the aborted transactions among them |
| only an incomplete batch | yield it; the decoder reports the damage |
| no records, though the range has not ended | request the end of the log: raise EndOfLogError if it is below |
| no records, but the log now ends later | retry, as for retriable errors |
| OFFSET_OUT_OF_RANGE | raise: the records are lost |
| unknown topic, also in new metadata | raise: the topic existed when the read was planned |
| another retriable error, or no response | retry until `request_timeout_ms` have passed without a success |
| any other error | raise |
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator
from contextlib import closing
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from odradek.client.config import IsolationLevel
from odradek.client.errors import ClientError, UnknownTopicError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster as ClientCluster
from odradek.client.network.cluster_image import TopicMetadata
from odradek.client.network.connection import Connection
from odradek.client.network.connections import Purpose
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import EventLoop, connect
from odradek.pipeline.options.broker_options import Cluster
from odradek.pipeline.reading.offsets import ClusterOffsets
from odradek.pipeline.records.whole_batches import WholeBatches, whole_batches
from odradek.protocol.api import FETCH_KEY
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    LAST_VERSION_WITH_TOPIC_NAMES,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.protocol.schema import LAST_VERSION, ZERO_UUID

T = TypeVar("T")

_MAX_WAIT_MS = 500
_OPERATION = "fetch"
_TOPIC_KNOWN_WITHIN_MS = 2000


class Fetched(NamedTuple):
    """Batches as they are in the log; producer id and first offset of the aborted transactions among them."""

    batches: WholeBatches
    aborted: list[tuple[int, int]]


class EndOfLogError(ClientError):
    """The log ends below an offset that it contained when the read was planned."""


class FetchClient:
    """A client of a cluster for blocking code in one thread; a context manager. Methods raise ClientError."""

    def __init__(self, cluster: Cluster) -> None:
        self.config = cluster.client_config()
        self._options = cluster
        self._loop = EventLoop()
        self.cluster: ClientCluster

    def __enter__(self) -> Self:
        try:
            self.cluster = self.run(connect(self.config))
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.run(self.cluster.close())
        self._loop.close()

    def run(self, work: Awaitable[T]) -> T:
        """Run the event loop until `work` is done."""
        return self._loop.run(work)

    def fetch(
        self, partition: TopicPartition, start: int, end: int, *, isolation_level: IsolationLevel, fetch_bytes: int
    ) -> Iterator[Fetched]:
        """Yield all batches with offsets in [start, end), and possibly others around them.

        Raises OffsetOutOfRangeError, and EndOfLogError if the log ends before `end`.
        """
        reading = _PartitionFetch(self, partition, isolation_level, fetch_bytes)
        try:
            yield from self._fetch(reading, start, end)
        finally:
            reading.cancel()

    def _fetch(self, reading: _PartitionFetch, start: int, end: int) -> Iterator[Fetched]:
        pause = Backoff(self.config.retry_backoff_ms / 1000, self.config.retry_backoff_max_ms / 1000)
        offset, progress_at = start, time.monotonic()
        reading.send(offset)
        while offset < end:
            try:
                row = reading.receive()
                if not row.records:
                    raise _no_records(reading.partition, offset, end, row)
            except ClientError as error:
                if self._is_final(error, progress_at) or self._has_ended(error, reading, offset):
                    raise
                self.run(_pause(self.cluster, pause.next()))
                reading.send(offset)
                continue
            batches = whole_batches(row.records)
            offset = max(offset, batches.next_offset or end)
            if offset < end:
                reading.send(offset)
            aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
            yield Fetched(batches, aborted)
            pause.reset()
            progress_at = time.monotonic()

    def _is_final(self, error: ClientError, progress_at: float) -> bool:
        """Whether a retry is useless: the topic no longer exists, the error is permanent, or the time is up."""
        if isinstance(error, UnknownTopicError) and error.topic not in self.cluster.image.topics:
            return True
        return not error.retriable or time.monotonic() - progress_at > self.config.request_timeout_ms / 1000

    def _has_ended(self, error: ClientError, reading: _PartitionFetch, offset: int) -> bool:
        """Whether the log ends at `offset`. ListOffsets decides: a new leader's Fetch may still lack records."""
        if not isinstance(error, EndOfLogError):
            return False
        with closing(ClusterOffsets(self._options, reading.isolation_level)) as offsets:
            return offsets.latest([reading.partition])[reading.partition] <= offset


class _PartitionFetch:
    """The requests for one partition: `send`, then `receive`, alternating; `cancel` at the end."""

    def __init__(
        self, client: FetchClient, partition: TopicPartition, isolation_level: IsolationLevel, size: int
    ) -> None:
        self._client = client
        self.partition = partition
        self.isolation_level = isolation_level
        self._size = size
        self._sent: tuple[Connection, asyncio.Future[FetchResponse]] | None = None
        self._failure: ClientError | None = None

    def send(self, offset: int) -> None:
        """Send a request; `receive` raises its errors."""
        self._sent = self._failure = None
        try:
            self._sent = self._send_request(offset)
        except ClientError as error:
            self._failure = error

    def receive(self) -> PartitionData:
        """Wait for the response to the last request. Raises ClientError."""
        if self._sent is None:
            raise self._failure or ClientError(_OPERATION, "no request was sent")
        connection, future = self._sent
        response = self._client.run(future)
        if response.error_code:
            raise broker_error(response.error_code, _OPERATION, broker=connection.name)
        topic, index = self.partition
        for topic_row in response.responses:
            for row in topic_row.partitions:
                if row.error_code:
                    raise broker_error(row.error_code, _OPERATION, broker=connection.name, topic=topic, partition=index)
                return row
        raise ClientError(_OPERATION, "the response does not contain the partition", broker=connection.name)

    def cancel(self) -> None:
        """Cancel the pending request, if any: a task may stop reading early."""
        if self._sent is not None:
            _, future = self._sent
            future.cancel()

    def _send_request(self, offset: int) -> tuple[Connection, asyncio.Future[FetchResponse]]:
        name, index = self.partition
        topic, connection = self._cached() or self._client.run(self._find())
        has_id = topic.topic_id != ZERO_UUID
        version = connection.versions.highest(FETCH_KEY, LAST_VERSION if has_id else LAST_VERSION_WITH_TOPIC_NAMES)
        wanted = FetchPartition(
            index,
            topic.partitions[index].leader_epoch,
            offset,
            partition_max_bytes=self._size,
        )
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._size,
            isolation_level=int(self.isolation_level == "read_committed"),
            topics=[FetchTopic(name, topic.topic_id, [wanted])],
        )
        return connection, connection.send(request, FetchResponse, version=version)

    def _cached(self) -> tuple[TopicMetadata, Connection] | None:
        """Return the topic and a connection to the leader if both exist already; then the event loop need not run."""
        cluster = self._client.cluster
        name, index = self.partition
        topic, leader = cluster.image.topics.get(name), cluster.leader(name, index)
        connection = None if leader is None else cluster.established(leader, Purpose.FETCH)
        return None if topic is None or connection is None else (topic, connection)

    async def _find(self) -> tuple[TopicMetadata, Connection]:
        cluster, config = self._client.cluster, self._client.config
        name, index = self.partition
        topic = await cluster.topic(name, min(config.request_timeout_ms, _TOPIC_KNOWN_WITHIN_MS))
        leader = cluster.leader(name, index)
        if leader is None:
            raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, _OPERATION, topic=name, partition=index)
        return topic, await cluster.connection(leader, Purpose.FETCH)


async def _pause(cluster: ClientCluster, seconds: float) -> None:
    """Wait, then refresh the metadata."""
    await asyncio.sleep(seconds)
    try:
        await cluster.refresh()
    except ClientError as error:
        if not error.retriable:
            raise


def _no_records(partition: TopicPartition, offset: int, end: int, row: PartitionData) -> ClientError:
    error = EndOfLogError(
        _OPERATION,
        f"the log ends at {row.high_watermark}; the query reads it from {offset} to {end}",
        topic=partition.topic,
        partition=partition.partition,
    )
    error.retriable = True  # the leader may be new and still behind
    return error
