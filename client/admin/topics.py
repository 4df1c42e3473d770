"""Topics: create, delete, describe and list them, add partitions, delete records (KIP-4, KIP-107, KIP-195, KIP-516)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from odradek.client.admin.arguments import NewPartitions, NewTopic
from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import (
    ConfigEntry,
    ConfigSource,
    CreatedTopic,
    PartitionDescription,
    Results,
    TopicDescription,
    TopicListing,
)
from odradek.client.errors import ClientError, ConfigurationError, broker_error
from odradek.client.network.connection import Connection
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.metadata import (
    FIRST_VERSION_WITH_REQUESTS_BY_ID,
    MetadataRequestTopic,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.uuids import uuid_from_text, uuid_to_text

_DELETE_TOPICS_KEY = 20
_FIRST_DELETION_BY_ID = 6


async def create_topics(
    calls: Calls, topics: Iterable[NewTopic], *, validate_only: bool, timeout_ms: int | None
) -> Results[str, CreatedTopic]:
    tried = "create a topic"
    wanted: dict[str, NewTopic] = {}
    for topic in topics:
        if wanted.setdefault(topic.name, topic) is not topic:
            raise ConfigurationError(tried, "it is named twice in one call", topic=topic.name)

    async def attempt(names: Sequence[str]) -> Outcomes[str, CreatedTopic]:
        connection = await calls.controller()
        request = CreateTopicsRequest(
            [_creatable(wanted[name]) for name in names], calls.config.request_timeout_ms, validate_only
        )
        response = await connection.send(request, CreateTopicsResponse)
        return {
            topic.name: broker_error(
                topic.error_code, tried, topic.error_message, broker=connection.name, topic=topic.name
            )
            if topic.error_code
            else _created(topic)
            for topic in response.topics
        }

    results = await calls.for_each(tried, wanted, attempt, timeout_ms)
    if not validate_only:
        await _wait_for_leaders(calls, results.succeeded, timeout_ms)
    return results


async def _wait_for_leaders(calls: Calls, names: Iterable[str], timeout_ms: int | None) -> None:
    """Wait until a broker reports leaders for new topics; a timeout is no error, since the topics exist."""
    tried = "wait for leaders"

    async def attempt(left: Sequence[str]) -> Outcomes[str, None]:
        connection = await calls.cluster.any_connection()
        response = await calls.metadata(connection, [MetadataRequestTopic(name=name) for name in left])
        awaited = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, tried, broker=connection.name)
        led = {topic.name for topic in response.topics if all(one.leader_id >= 0 for one in topic.partitions)}
        known = {topic.name for topic in response.topics if not topic.error_code}
        return {name: None if name in led & known else awaited for name in left}

    await calls.for_each(tried, names, attempt, timeout_ms)


async def delete_topics(
    calls: Calls, topics: Iterable[str], *, by_id: bool, timeout_ms: int | None
) -> Results[str, None]:
    tried = "delete a topic"
    wanted = list(topics)
    ids = {topic: _topic_id(tried, topic) for topic in wanted} if by_id else {}

    async def attempt(left: Sequence[str]) -> Outcomes[str, None]:
        connection = await calls.controller()
        request = DeleteTopicsRequest(timeout_ms=calls.config.request_timeout_ms)
        at_least = _FIRST_DELETION_BY_ID if by_id else 0
        version = connection.versions.highest(_DELETE_TOPICS_KEY, at_least=at_least)
        if by_id:
            request.topics = [DeleteTopicState(topic_id=ids[topic]) for topic in left]
        elif version >= _FIRST_DELETION_BY_ID:
            request.topics = [DeleteTopicState(name=topic) for topic in left]
        else:
            request.topic_names = list(left)
        response = await connection.send(request, DeleteTopicsResponse, version=version)
        outcomes: dict[str, ClientError | None] = {}
        for result in response.responses:
            topic = uuid_to_text(result.topic_id) if by_id else result.name or ""
            outcomes[topic] = None
            if result.error_code:
                outcomes[topic] = broker_error(
                    result.error_code, tried, result.error_message, broker=connection.name, topic=result.name or topic
                )
        return outcomes

    return await calls.for_each(tried, wanted, attempt, timeout_ms)


async def describe_topics(
    calls: Calls, topics: Iterable[str], *, by_id: bool, timeout_ms: int | None
) -> Results[str, TopicDescription]:
    tried = "describe a topic"
    wanted = list(topics)
    ids = {topic: _topic_id(tried, topic) for topic in wanted} if by_id else {}

    async def attempt(left: Sequence[str]) -> Outcomes[str, TopicDescription]:
        connection = await calls.cluster.any_connection()
        if by_id:
            requested = [MetadataRequestTopic(ids[topic], None) for topic in left]
        else:
            requested = [MetadataRequestTopic(name=topic) for topic in left]
        response = await calls.metadata(
            connection, requested, at_least=FIRST_VERSION_WITH_REQUESTS_BY_ID if by_id else 0
        )
        outcomes: dict[str, TopicDescription | ClientError] = {}
        for result in response.topics:
            topic = uuid_to_text(result.topic_id) if by_id else result.name or ""
            outcomes[topic] = _described(result)
            if result.error_code:
                outcomes[topic] = broker_error(
                    result.error_code, tried, broker=connection.name, topic=result.name or topic
                )
        return outcomes

    return await calls.for_each(tried, wanted, attempt, timeout_ms)


async def list_topics(calls: Calls, *, include_internal: bool, timeout_ms: int | None) -> dict[str, TopicListing]:
    async def call(connection: Connection) -> dict[str, TopicListing]:
        response = await calls.metadata(connection, None)
        return {
            topic.name: TopicListing(topic.name, uuid_to_text(topic.topic_id), len(topic.partitions), topic.is_internal)
            for topic in sorted(response.topics, key=lambda topic: topic.name or "")
            if topic.name is not None and (include_internal or not topic.is_internal)
        }

    return await calls.once("list topics", call, timeout_ms)


async def create_partitions(
    calls: Calls, totals: Mapping[str, int | NewPartitions], *, validate_only: bool, timeout_ms: int | None
) -> Results[str, None]:
    tried = "add partitions"

    async def attempt(names: Sequence[str]) -> Outcomes[str, None]:
        connection = await calls.controller()
        topics = [_grown(name, totals[name]) for name in names]
        request = CreatePartitionsRequest(topics, calls.config.request_timeout_ms, validate_only)
        response = await connection.send(request, CreatePartitionsResponse)
        return {
            topic.name: broker_error(
                topic.error_code, tried, topic.error_message, broker=connection.name, topic=topic.name
            )
            if topic.error_code
            else None
            for topic in response.results
        }

    return await calls.for_each(tried, totals, attempt, timeout_ms)


async def delete_records(
    calls: Calls, before: Mapping[TopicPartition, int], *, timeout_ms: int | None
) -> Results[TopicPartition, int]:
    tried = "delete records"

    async def call(connection: Connection, partitions: Sequence[TopicPartition]) -> Outcomes[TopicPartition, int]:
        topics: dict[str, DeleteRecordsTopic] = {}
        for partition in partitions:
            topic = topics.setdefault(partition.topic, DeleteRecordsTopic(partition.topic, []))
            topic.partitions.append(DeleteRecordsPartition(partition.partition, before[partition]))
        request = DeleteRecordsRequest(list(topics.values()), calls.config.request_timeout_ms)
        response = await connection.send(request, DeleteRecordsResponse)
        return {
            TopicPartition(topic.name, row.partition_index): broker_error(
                row.error_code, tried, broker=connection.name, topic=topic.name, partition=row.partition_index
            )
            if row.error_code
            else row.low_watermark
            for topic in response.topics
            for row in topic.partitions
        }

    async def attempt(partitions: Sequence[TopicPartition]) -> Outcomes[TopicPartition, int]:
        return await calls.at_brokers(await calls.leaders(tried, partitions), call)

    return await calls.for_each(tried, before, attempt, timeout_ms)


def _topic_id(tried: str, text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError as error:
        raise ConfigurationError(tried, str(error), "A topic id is 22 characters of base64url") from None


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        [CreatableReplicaAssignment(index, list(brokers)) for index, brokers in topic.assignments.items()],
        [CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
    )


def _created(topic: CreatableTopicResult) -> CreatedTopic:
    configs = None
    if topic.configs is not None and not topic.topic_config_error_code:
        configs = {
            config.name: ConfigEntry(
                config.name, config.value, ConfigSource(config.config_source), config.is_sensitive, config.read_only
            )
            for config in topic.configs
        }
    return CreatedTopic(
        topic.name, uuid_to_text(topic.topic_id), topic.num_partitions, topic.replication_factor, configs
    )


def _described(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        topic.name or "",
        uuid_to_text(topic.topic_id),
        topic.is_internal,
        tuple(_described_partition(partition) for partition in partitions),
    )


def _described_partition(partition: MetadataResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )


def _grown(name: str, total: int | NewPartitions) -> CreatePartitionsTopic:
    if isinstance(total, int):
        return CreatePartitionsTopic(name, total, None)
    assignments = total.assignments
    by_hand = None if assignments is None else [CreatePartitionsAssignment(list(brokers)) for brokers in assignments]
    return CreatePartitionsTopic(name, total.total, by_hand)
