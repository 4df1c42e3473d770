"""CreatePartitions (37), versions 0–3: add partitions to topics (KIP-195), or only validate the request.

A topic names its new total of partitions; a total that is not larger than the current one is INVALID_PARTITIONS. It may
name the replicas of each new partition: as many as the others have, on live brokers, else INVALID_REPLICA_ASSIGNMENT.
One transaction of the metadata store has all valid topics, or several if they add many partitions; each topic succeeds
or fails independently: UNKNOWN_TOPIC_OR_PARTITION; a topic that is named twice is INVALID_REQUEST.
Without the right to alter it a topic is TOPIC_AUTHORIZATION_FAILED.
A topic with which the request would create more than 10,000 partitions is POLICY_VIOLATION. Differs from Kafka, where
it is UNKNOWN_SERVER_ERROR. New partitions are charged to the quota of controller mutations (KIP-599): from version 3 on
a topic over the quota is THROTTLING_QUOTA_EXCEEDED; earlier it grows, and the client is throttled.

The response is sent when this broker leads its new partitions. If that takes longer than the timeout, the partitions
exist nevertheless, and REQUEST_TIMED_OUT reports that they may not be usable yet.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.metadata.administration.topics import Growth, grow_topics
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_FIRST_VERSION_WITH_STRICT_QUOTA = 3


async def handle(
    services: Services, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    time_slice = services.time_slices.begin(context.connection)
    pause = time_slice.step
    named = Counter(await time_slice.map(_name, request.topics))
    quota = services.throttling.mutations(context, _FIRST_VERSION_WITH_STRICT_QUOTA)
    outcomes: dict[str, TopicImage | KafkaError] = {}
    growths: list[Growth] = []
    with time_limit(request.timeout_ms):
        for topic in {topic.name: topic for topic in request.topics}.values():
            await pause()
            refused = refusal_of(services, context, Operation.ALTER, ResourceType.TOPIC, topic.name)
            if refused is not None:
                outcomes[topic.name] = refused
            elif named[topic.name] > 1:
                outcomes[topic.name] = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            else:
                assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
                growths.append(Growth(topic.name, topic.count, assignments))
        grown_or_not = await grow_topics(
            services.metadata,
            growths,
            validate_only=request.validate_only,
            charge=quota.take,
            pause=pause,
            report=services.topic_log.growths(context),
        )
    outcomes |= zip((growth.name for growth in growths), grown_or_not, strict=True)
    results = await time_slice.map(lambda name: _result(name, outcomes[name]), named)
    grown = [result for result in results if result.error_code == ErrorCode.NONE]
    if grown and not request.validate_only and not await services.partitions.settled_within(request.timeout_ms):
        for result in grown:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            result.error_message = "The partitions were created but may not be usable yet."
    return CreatePartitionsResponse(quota.throttle_ms(), results)


def error_response(request: CreatePartitionsRequest, code: ErrorCode, message: str) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(topic.name, code, message or None) for topic in request.topics]
    )


def _result(name: str, outcome: TopicImage | KafkaError) -> CreatePartitionsTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(name, outcome.code, outcome.detail or None)
    return CreatePartitionsTopicResult(name)


def _name(topic: CreatePartitionsTopic) -> str:
    return topic.name
