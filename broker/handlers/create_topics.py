"""CreateTopics (19), versions 2–7: create topics, or only validate the request.

A topic names its numbers of partitions and replicas (-1: the broker's default), or the replicas of every partition;
then both numbers must be -1. Each topic succeeds or fails independently; a topic that is named twice is
INVALID_REQUEST. If a request has more than 10,000 partitions in all, every topic is POLICY_VIOLATION, before any other
error of it. From version 5 on (KIP-525) the response has the resulting numbers and configs, from version 7 on (KIP-516)
the topic id.

A topic needs the right to create on the cluster or on the topic, else it is TOPIC_AUTHORIZATION_FAILED. Without
DescribeConfigs on the topic its numbers and configs are not in the response.

The response is sent when this broker leads its partitions, so that the client's next request finds them. If that takes
longer than the timeout, the topic exists nevertheless, and REQUEST_TIMED_OUT reports that it may not be usable yet.
When the client disconnects, the remaining topics are not created.

A valid topic is charged to the quota of controller mutations (KIP-599), also when it is only validated. From version 6
on a topic over the quota is THROTTLING_QUOTA_EXCEEDED; earlier it is created, and the client throttled.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.config.describe import ConfigRow
from odradek.broker.handlers.describe_configs import describe_topic
from odradek.broker.metadata.administration.placement import DEFAULT, MAX_PARTITIONS, TOO_MANY_PARTITIONS
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_cluster, allows_on_topic, refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.throttling import MutationQuota
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.schema import ZERO_UUID

_FIRST_VERSION_WITH_STRICT_QUOTA = 6


async def handle(services: Services, context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    named = Counter(topic.name for topic in request.topics)
    too_many = _partitions_count(services, request, named) > MAX_PARTITIONS
    results: dict[str, CreatableTopicResult] = {}
    quota = services.throttling.mutations(context, _FIRST_VERSION_WITH_STRICT_QUOTA)
    time_slice = services.time_slices.begin(context.connection)
    with time_limit(request.timeout_ms):
        for topic in request.topics:
            await time_slice.step()
            refused = _refusal_of(services, context, topic.name)
            if refused is not None:
                result = _failure(topic.name, refused.code, refused.detail)
            elif named[topic.name] > 1:
                result = _failure(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            elif too_many:
                result = _failure(topic.name, ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
            else:
                try:
                    result = await _create(services, context, topic, request, quota)
                except KafkaError as error:
                    result = _failure(topic.name, error.code, error.detail)
            results[topic.name] = result
    rows = list(results.values())
    await _wait_until_usable(services, rows, request)
    return CreateTopicsResponse(quota.throttle_ms(), rows)


def error_response(request: CreateTopicsRequest, code: ErrorCode, message: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failure(topic.name, code, message) for topic in request.topics])


def _refusal_of(services: Services, context: RequestContext, name: str) -> KafkaError | None:
    if allows_on_cluster(services, context, Operation.CREATE):
        return None
    return refusal_of(services, context, Operation.CREATE, ResourceType.TOPIC, name)


def _partitions_count(services: Services, request: CreateTopicsRequest, named: Counter[str]) -> int:
    """The number of partitions in the request, counted as Kafka's `validateTotalNumberOfPartitions` does."""
    count = 0
    for topic in request.topics:
        if named[topic.name] == 1:
            count_in_request = len(topic.assignments) or topic.num_partitions
            count += services.config.num_partitions if count_in_request == DEFAULT else max(0, count_in_request)
    return count


async def _create(
    services: Services,
    context: RequestContext,
    topic: CreatableTopic,
    request: CreateTopicsRequest,
    quota: MutationQuota,
) -> CreatableTopicResult:
    assignments = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has more than one replica assignment.")
    created = await create_topic(
        services.metadata,
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        assignments,
        {config.name: config.value for config in topic.configs},
        request.validate_only,
        quota.take,
    )
    if not allows_on_topic(services, context, Operation.DESCRIBE_CONFIGS, topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return CreatableTopicResult(
            created.name, created.topic_id, ErrorCode.NONE, None, topic_config_error_code=code, configs=None
        )
    return _result(services, created)


async def _wait_until_usable(
    services: Services, results: list[CreatableTopicResult], request: CreateTopicsRequest
) -> None:
    created = [result for result in results if result.error_code == ErrorCode.NONE]
    if request.validate_only or not created:
        return
    if not await services.partitions.settled_within(request.timeout_ms):
        for result in created:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            result.error_message = "The topic was created but may not be usable yet."


def _result(services: Services, topic: TopicImage) -> CreatableTopicResult:
    rows = describe_topic(services, topic)
    return CreatableTopicResult(
        topic.name,
        topic.topic_id,
        ErrorCode.NONE,
        None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[_config(row) for row in sorted(rows, key=lambda row: row.name)],
    )


def _config(row: ConfigRow) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(row.name, row.value, row.read_only, row.source, row.sensitive)


def _failure(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name, ZERO_UUID, code, message or None, configs=[])
