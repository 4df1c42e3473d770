"""CreateTopics (19), versions 2–7: create topics, or only validate the request.

A topic names its numbers of partitions and replicas (-1: the broker's default), or the replicas of every partition;
then both numbers must be -1. One transaction of the metadata store creates all valid topics, or several if there are
many; each topic succeeds or fails independently. A topic that is named twice is INVALID_REQUEST. If a request has more
than 10,000 partitions in all, every topic is POLICY_VIOLATION, before any other error of it. From version 5 on
(KIP-525) the response has the resulting numbers and configs, from version 7 on (KIP-516) the topic id.

A topic needs the right to create on the cluster or on the topic, else it is TOPIC_AUTHORIZATION_FAILED. Without
DescribeConfigs on the topic its numbers and configs are not in the response.

The response is sent when this broker leads its partitions, so that the client's next request finds them. If that takes
longer than the timeout, the topic exists nevertheless, and REQUEST_TIMED_OUT reports that it may not be usable yet.
When the client disconnects, the topics that are not yet written are not created.

A valid topic is charged to the quota of controller mutations (KIP-599), also when it is only validated. From version 6
on a topic over the quota is THROTTLING_QUOTA_EXCEEDED; earlier it is created, and the client throttled.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.config.describe import ConfigRow
from odradek.broker.handlers.describe_configs import describe_topic
from odradek.broker.metadata.administration.placement import DEFAULT, MAX_PARTITIONS, TOO_MANY_PARTITIONS
from odradek.broker.metadata.administration.topic_writes import Pause
from odradek.broker.metadata.administration.topics import NewTopic, create_topics
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_cluster, allows_on_topic, refusal_of
from odradek.broker.request.services import Services
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
    failed: dict[str, CreatableTopicResult] = {}
    new: list[NewTopic] = []
    quota = services.throttling.mutations(context, _FIRST_VERSION_WITH_STRICT_QUOTA)
    pause = services.time_slices.begin(context.connection).step
    with time_limit(request.timeout_ms):
        too_many = await _partitions_count(services, request, named, pause) > MAX_PARTITIONS
        for topic in request.topics:
            await pause()
            error = _error_of(services, context, topic, is_duplicate=named[topic.name] > 1, too_many=too_many)
            if error is None:
                new.append(_new_topic(topic))
            else:
                failed[topic.name] = _failure(topic.name, error)
        outcomes = await create_topics(
            services.metadata,
            new,
            validate_only=request.validate_only,
            charge=quota.take,
            pause=pause,
            report=services.topic_log.creations(context),
        )
    rows = []
    outcome_of = dict(zip((each.name for each in new), outcomes, strict=True))
    descriptions = _Descriptions(services)
    for name in named:
        await pause()
        rows.append(failed.get(name) or _result(services, context, name, outcome_of[name], descriptions))
    await _wait_until_usable(services, rows, request)
    return CreateTopicsResponse(quota.throttle_ms(), rows)


def error_response(request: CreateTopicsRequest, code: ErrorCode, message: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failure(topic.name, KafkaError(code, message)) for topic in request.topics])


def _error_of(
    services: Services, context: RequestContext, topic: CreatableTopic, *, is_duplicate: bool, too_many: bool
) -> KafkaError | None:
    """Return the error of a topic for which its contents do not count, or only the request's."""
    if not allows_on_cluster(services, context, Operation.CREATE):
        refused = refusal_of(services, context, Operation.CREATE, ResourceType.TOPIC, topic.name)
        if refused is not None:
            # Kafka's text in this answer alone has no word for the topic (ControllerApis.createTopics).
            return KafkaError(refused.code, "Authorization failed.")
    if is_duplicate:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if too_many:
        return KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
    if len({assignment.partition_index for assignment in topic.assignments}) != len(topic.assignments):
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has more than one replica assignment.")
    return None


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments},
        {config.name: config.value for config in topic.configs},
    )


async def _partitions_count(services: Services, request: CreateTopicsRequest, named: Counter[str], pause: Pause) -> int:
    """The number of partitions in the request, counted as Kafka's `validateTotalNumberOfPartitions` does."""
    count, default = 0, services.config.num_partitions
    for topic in request.topics:
        await pause()
        if named[topic.name] == 1:
            count_in_request = len(topic.assignments) or topic.num_partitions
            count += default if count_in_request == DEFAULT else max(0, count_in_request)
    return count


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


def _result(
    services: Services,
    context: RequestContext,
    name: str,
    outcome: TopicImage | KafkaError,
    descriptions: _Descriptions,
) -> CreatableTopicResult:
    if isinstance(outcome, KafkaError):
        return _failure(name, outcome)
    if not allows_on_topic(services, context, Operation.DESCRIBE_CONFIGS, name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return CreatableTopicResult(
            name, outcome.topic_id, ErrorCode.NONE, None, topic_config_error_code=code, configs=None
        )
    return CreatableTopicResult(
        name,
        outcome.topic_id,
        ErrorCode.NONE,
        None,
        num_partitions=len(outcome.partitions),
        replication_factor=len(outcome.partitions[0].replicas),
        configs=descriptions.of(outcome),
    )


class _Descriptions:
    """The properties of the topics in one response: described once for all topics that set the same, as most do."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._described: dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]] = {}

    def of(self, topic: TopicImage) -> list[CreatableTopicConfigs]:
        own = frozenset(topic.configs.items())
        if own not in self._described:
            rows = sorted(describe_topic(self._services, topic), key=lambda row: row.name)
            self._described[own] = [_config(row) for row in rows]
        return self._described[own]


def _config(row: ConfigRow) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(row.name, row.value, row.read_only, row.source, row.sensitive)


def _failure(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name, ZERO_UUID, error.code, error.detail or None, configs=[])
