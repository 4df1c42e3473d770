"""The log directories of brokers and their contents (DescribeLogDirs, KIP-113, KIP-827)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import LogDirDescription, ReplicaDescription, Results
from odradek.client.errors import broker_error
from odradek.client.network.connection import Connection
from odradek.client.record import TopicPartition
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

LogDirs = tuple[LogDirDescription, ...]

_TRIED = "describe log directories"


async def describe_log_dirs(
    calls: Calls,
    brokers: Iterable[int] | None,
    *,
    partitions: Iterable[TopicPartition] | None = None,
    timeout_ms: int | None,
) -> Results[int, LogDirs]:
    """Describe the directories of brokers (None: all), with the replicas of partitions (None: all)."""
    topics = None if partitions is None else _by_topic(partitions)

    async def call(connection: Connection, requested: Sequence[int]) -> Outcomes[int, LogDirs]:
        response = await connection.send(DescribeLogDirsRequest(topics), DescribeLogDirsResponse)
        if response.error_code:
            raise broker_error(response.error_code, _TRIED, broker=connection.name)
        return dict.fromkeys(requested, tuple(_described(result, connection) for result in response.results))

    async def attempt(left: Sequence[int]) -> Outcomes[int, LogDirs]:
        return await calls.at_brokers({broker: await calls.existing_broker(_TRIED, broker) for broker in left}, call)

    wanted = sorted(calls.cluster.image.brokers) if brokers is None else brokers
    return await calls.for_each(_TRIED, wanted, attempt, timeout_ms)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[DescribableLogDirTopic]:
    topics: dict[str, DescribableLogDirTopic] = {}
    for topic, index in partitions:
        topics.setdefault(topic, DescribableLogDirTopic(topic, [])).partitions.append(index)
    return list(topics.values())


def _described(log_dir: DescribeLogDirsResult, connection: Connection) -> LogDirDescription:
    error = None
    if log_dir.error_code:
        error = broker_error(log_dir.error_code, f"read the log directory {log_dir.log_dir}", broker=connection.name)
    replicas = {
        TopicPartition(topic.name, row.partition_index): ReplicaDescription(
            row.partition_size, row.offset_lag, row.is_future_key
        )
        for topic in log_dir.topics
        for row in topic.partitions
    }
    return LogDirDescription(log_dir.log_dir, log_dir.total_bytes, log_dir.usable_bytes, replicas, error)
