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
| the topic has another id in new metadata | raise TopicRecreatedError: it was deleted and created again |
| another retriable error, or no response | retry until the timeout of the cluster has passed without a success |
| any other error | raise |
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from odradek.client.config import IsolationLevel
from odradek.client.errors import ClientError, UnknownTopicError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster as ClientCluster
from odradek.client.network.cluster_image import TopicMetadata
from odradek.client.network.connection import Connection
from odradek.client.network.connections import Purpose
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import BlockingClient
from odradek.pipeline.options.broker_options import Cluster
from odradek.pipeline.reading.offsets import ClusterOffsets
from odradek.pipeline.reading.ranges import OffsetRange
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
from odradek.protocol.uuids import uuid_to_text

_MAX_WAIT_MS = 500
_OPERATION = "fetch"
_TOPIC_KNOWN_WITHIN_MS = 2000
_TOPIC_ID_KNOWN_WITHIN_S = 0.5


class Fetched(NamedTuple):
    """Batches as they are in the log; producer id and first offset of the aborted transactions among them."""

    batches: WholeBatches
    aborted: list[tuple[int, int]]


class EndOfLogError(ClientError):
    """The log ends below an offset that it contained when the read was planned."""


class TopicRecreatedError(ClientError):
    """The topic was deleted and created again since the read was planned."""


class FetchClient:
    """Fetches of one task, with a client that the caller closes. Methods raise ClientError."""

    def __init__(self, client: BlockingClient, cluster: Cluster) -> None:
        self.config = client.config
        self.cluster = client.cluster
        self.run = client.run
        self.recreated: set[str] = set()  # topics
        self._options = cluster

    def fetch(
        self, offset_range: OffsetRange, *, isolation_level: IsolationLevel, fetch_bytes: int
    ) -> Iterator[Fetched]:
        """Yield all batches with offsets in a range, and possibly others around them.

        Raises OffsetOutOfRangeError, EndOfLogError if the log ends before the range, TopicRecreatedError.
        """
        reading = _PartitionFetch(self, offset_range, isolation_level, fetch_bytes)
        try:
            yield from self._fetch(reading, offset_range.start, offset_range.end)
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
        return not error.retriable or time.monotonic() - progress_at > self._options.timeout_ms / 1000

    def _has_ended(self, error: ClientError, reading: _PartitionFetch, offset: int) -> bool:
        """Whether the log ends at `offset`. ListOffsets decides: a new leader's Fetch may still lack records."""
        if not isinstance(error, EndOfLogError):
            return False
        with closing(ClusterOffsets(self._options, reading.isolation_level)) as offsets:
            return offsets.latest([reading.partition])[reading.partition] <= offset


class _PartitionFetch:
    """The requests for one partition: `send`, then `receive`, alternating; `cancel` at the end."""

    def __init__(
        self, client: FetchClient, offset_range: OffsetRange, isolation_level: IsolationLevel, size: int
    ) -> None:
        self._client = client
        self._range = offset_range
        self.partition = offset_range.partition
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
        connection.restart_timeouts()  # the task may have worked for longer, and the response may be in the buffers
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
        """Close the connection if a request is pending: a task may stop reading early.

        Otherwise the next task on this connection would wait for the response.
        """
        if self._sent is not None:
            connection, future = self._sent
            if not future.done():
                future.cancel()
                connection.close()

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
        return None if topic is None or connection is None or self._differs(topic) else (topic, connection)

    async def _find(self) -> tuple[TopicMetadata, Connection]:
        cluster, config = self._client.cluster, self._client.config
        name, index = self.partition
        topic = await cluster.topic(name, min(config.request_timeout_ms, _TOPIC_KNOWN_WITHIN_MS))
        if self._differs(topic):
            topic = await self._find_planned()
        leader = cluster.leader(name, index)
        if leader is None:
            raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, _OPERATION, topic=name, partition=index)
        return topic, await cluster.connection(leader, Purpose.FETCH)

    async def _find_planned(self) -> TopicMetadata:
        """Request metadata until they have the id of the plan, which is newer. Raises TopicRecreatedError."""
        cluster, name = self._client.cluster, self.partition.topic
        until = time.monotonic() + _TOPIC_ID_KNOWN_WITHIN_S
        while True:
            await cluster.refresh()
            topic = await cluster.topic(name, _TOPIC_KNOWN_WITHIN_MS)
            if not self._differs(topic):
                return topic
            if len(cluster.image.brokers) == 1 or name in self._client.recreated or time.monotonic() > until:
                self._client.recreated.add(name)  # so that its other partitions do not wait
                raise _recreated(self._range, topic)

    def _differs(self, topic: TopicMetadata) -> bool:
        """Whether the topic has another id than the plan; false if either has none."""
        planned = self._range.topic_id
        return bool(planned) and topic.topic_id != ZERO_UUID and uuid_to_text(topic.topic_id) != planned


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


def _recreated(offset_range: OffsetRange, topic: TopicMetadata) -> TopicRecreatedError:
    return TopicRecreatedError(
        _OPERATION,
        f"the topic was deleted and created again: the query reads offsets {offset_range.start} to {offset_range.end} "
        f"of the topic with id {offset_range.topic_id}, but the id is now {uuid_to_text(topic.topic_id)}",
        topic=topic.name,
        partition=offset_range.partition.partition,
    )
