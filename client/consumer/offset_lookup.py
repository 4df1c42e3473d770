"""Offsets of partitions by time, and their beginnings and ends (ListOffsets)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.errors import ClientError, TimeLimitError, UnknownTopicError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster
from odradek.client.network.cluster_image import STALE_METADATA
from odradek.client.record import OffsetAndTimestamp, TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.plural import pluralize

_CONSUMER = -1  # the replica id of a client
_TRIED = "look up an offset"

Found = dict[TopicPartition, OffsetAndTimestamp]


class OffsetLookup:
    """Looks up offsets for one consumer."""

    def __init__(self, config: ConsumerConfig, cluster: Cluster) -> None:
        self._config = config
        self._cluster = cluster

    async def find(self, times: Mapping[TopicPartition, int], timeout_ms: int) -> Found:
        """Find the first offset at or after each time (ms, or LATEST, EARLIEST); offset -1 if there is none.

        Gets the metadata of the topics, then the offsets, with retries, each of the two for `timeout_ms` at most.
        Raises BrokerError for an error that cannot be retried, and the last error after `timeout_ms`.
        """
        lookup = object()
        self._cluster.track(lookup, {partition.topic for partition in times})
        try:
            return await self._find(times, timeout_ms)
        finally:
            self._cluster.track(lookup, ())

    async def _find(self, times: Mapping[TopicPartition, int], timeout_ms: int) -> Found:
        found: Found = {}
        failure: ClientError | None = None
        backoff = Backoff(self._config.retry_backoff_ms / 1000, self._config.retry_backoff_max_ms / 1000)
        await self._find_topics(times, timeout_ms)
        limit = asyncio.timeout(timeout_ms / 1000)
        try:
            async with limit:
                while missing := {partition: times[partition] for partition in times if partition not in found}:
                    if failure is not None:
                        await asyncio.sleep(backoff.next())
                    failure = await self._list_offsets_by_leader(missing, found)
        except TimeoutError:
            if not limit.expired():
                raise
            if failure is not None:
                raise failure from None
            raise TimeLimitError(_TRIED, f"no response within {timeout_ms} ms") from None
        return found

    async def find_or_end(self, times: Mapping[TopicPartition, int], timeout_ms: int) -> Found:
        """Find offsets as `find` does, or the end of a partition without a record that late."""
        found = await self.find(times, timeout_ms)
        beyond = [partition for partition, at in found.items() if at.offset < 0]
        return found | await self.find(dict.fromkeys(beyond, LATEST), timeout_ms) if beyond else found

    async def _find_topics(self, partitions: Iterable[TopicPartition], timeout_ms: int) -> None:
        most: dict[str, int] = {}
        for topic, index in partitions:
            most[topic] = max(most.get(topic, 0), index + 1)
        found = {
            topic: await self._cluster.topic(topic, timeout_ms, keep=False, partitions=count)
            for topic, count in most.items()
        }
        for topic, index in partitions:
            known = found[topic]
            if not 0 <= index < len(known.partitions):
                raise UnknownTopicError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    _TRIED,
                    f"the topic has {pluralize(len(known.partitions), 'partition')}",
                    topic=topic,
                    partition=index,
                )

    async def _list_offsets_by_leader(self, times: Mapping[TopicPartition, int], found: Found) -> ClientError | None:
        """Add the results to `found`; return a retriable error if some are missing."""
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        failure: ClientError | None = None
        for partition, time in times.items():
            leader = self._cluster.leader(*partition)
            if leader is None:
                self._cluster.request_refresh()
                failure = broker_error(
                    ErrorCode.LEADER_NOT_AVAILABLE, _TRIED, topic=partition.topic, partition=partition.partition
                )
            else:
                by_leader.setdefault(leader, {})[partition] = time
        requested = (self._list_offsets(leader, wanted, found) for leader, wanted in by_leader.items())
        for outcome in await asyncio.gather(*requested, return_exceptions=True):
            if isinstance(outcome, ClientError) and outcome.retriable:
                failure = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
        return failure

    async def _list_offsets(self, leader: int, times: Mapping[TopicPartition, int], found: Found) -> None:
        connection = await self._cluster.connection(leader)
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, index), time in times.items():
            known = self._cluster.image.partition(name, index)
            topic = topics.setdefault(name, ListOffsetsTopic(name, []))
            topic.partitions.append(ListOffsetsPartition(index, known.leader_epoch if known else -1, time))
        request = ListOffsetsRequest(_CONSUMER, int(self._config.reads_committed), list(topics.values()))
        response = await connection.send(request, ListOffsetsResponse)
        failure: ClientError | None = None
        for result in response.topics:
            for row in result.partitions:
                if row.error_code:
                    failure = broker_error(
                        row.error_code, _TRIED, broker=connection.name, topic=result.name, partition=row.partition_index
                    )
                    if row.error_code in STALE_METADATA:
                        self._cluster.request_refresh()
                    if not failure.retriable:
                        raise failure
                else:
                    partition = TopicPartition(result.name, row.partition_index)
                    found[partition] = OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch)
        if failure is None and any(partition not in found for partition in times):
            failure = ClientError(_TRIED, "the response does not have every partition", broker=connection.name)
        if failure is not None:
            raise failure
