"""Offsets of partitions by time, and their beginnings and ends (ListOffsets); any number in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.client.admin.arguments import OffsetSpec
from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import Results
from odradek.client.errors import broker_error
from odradek.client.network.connection import Connection
from odradek.client.record import OffsetAndTimestamp, TopicPartition
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_LIST_OFFSETS_KEY = 2
_FIRST_WITH_MAX_TIMESTAMP = 7
_CONSUMER = -1  # the replica id of a client
_ANY_LEADER_EPOCH = -1


async def list_offsets(
    calls: Calls, times: Mapping[TopicPartition, int], *, read_committed: bool, timeout_ms: int | None
) -> Results[TopicPartition, OffsetAndTimestamp]:
    tried = "look up an offset"

    async def call(
        connection: Connection, partitions: Sequence[TopicPartition]
    ) -> Outcomes[TopicPartition, OffsetAndTimestamp]:
        topics: dict[str, ListOffsetsTopic] = {}
        for partition in partitions:
            topic = topics.setdefault(partition.topic, ListOffsetsTopic(partition.topic, []))
            topic.partitions.append(ListOffsetsPartition(partition.partition, _ANY_LEADER_EPOCH, times[partition]))
        asks_maximum = any(times[partition] == OffsetSpec.MAX_TIMESTAMP for partition in partitions)
        version = connection.versions.highest(
            _LIST_OFFSETS_KEY, at_least=_FIRST_WITH_MAX_TIMESTAMP if asks_maximum else 0
        )
        request = ListOffsetsRequest(
            _CONSUMER, int(read_committed), list(topics.values()), calls.config.request_timeout_ms
        )
        response = await connection.send(request, ListOffsetsResponse, version=version)
        return {
            TopicPartition(topic.name, row.partition_index): broker_error(
                row.error_code, tried, broker=connection.name, topic=topic.name, partition=row.partition_index
            )
            if row.error_code
            else OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch)
            for topic in response.topics
            for row in topic.partitions
        }

    async def attempt(partitions: Sequence[TopicPartition]) -> Outcomes[TopicPartition, OffsetAndTimestamp]:
        return await calls.at_brokers(await calls.leaders(tried, partitions), call)

    return await calls.for_each(tried, times, attempt, timeout_ms)
