"""CreatePartitions (37), versions 0–3: give topics more partitions (KIP-195), or with `validate_only` say if it works.

A topic says how many partitions it is to have in all; no more than now is INVALID_PARTITIONS. It may name the replicas
of each new one, as many as the others have, on brokers that serve: else INVALID_REPLICA_ASSIGNMENT. Each topic succeeds
or fails for itself: UNKNOWN_TOPIC_OR_PARTITION; one that is named twice is INVALID_REQUEST. A topic with which the
request would create more than 10,000 is POLICY_VIOLATION. Differs from Kafka, where it is UNKNOWN_SERVER_ERROR.
Versions 1 and 3 only say what the client understands of throttling, which there is not.

The answer goes out when this broker leads the new partitions that it will lead; if that takes longer than the timeout
they exist all the same, and REQUEST_TIMED_OUT says that they may not be usable yet.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.metadata.placement import MAX_PARTITIONS, TOO_MANY_PARTITIONS
from odradek.broker.metadata.topics import grow_topic
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    services: Services, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    named = Counter(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}.values()
    time_slice = services.time_slices.begin(context.connection)
    results = []
    left = MAX_PARTITIONS
    for topic in topics:
        await time_slice.step()
        growth = _growth(services, topic)
        if growth > left:
            results.append(CreatePartitionsTopicResult(topic.name, ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS))
            continue
        result = await _grow(services, request, topic, named[topic.name])
        if result.error_code == ErrorCode.NONE:
            left -= growth
        results.append(result)
    grown = [result for result in results if result.error_code == ErrorCode.NONE]
    if grown and not request.validate_only and not await services.partitions.settled_within(request.timeout_ms):
        for result in grown:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            result.error_message = "The partitions were created but may not be usable yet."
    return CreatePartitionsResponse(results=results)


def error_response(request: CreatePartitionsRequest, code: ErrorCode, message: str) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(topic.name, code, message or None) for topic in request.topics]
    )


def _growth(services: Services, topic: CreatePartitionsTopic) -> int:
    """How many partitions a topic is to get; 0 or less for what is refused in any case."""
    known = services.metadata.image.topics.get(topic.name)
    return 0 if known is None else topic.count - len(known.partitions)


async def _grow(
    services: Services, request: CreatePartitionsRequest, topic: CreatePartitionsTopic, times_named: int
) -> CreatePartitionsTopicResult:
    if times_named > 1:
        return CreatePartitionsTopicResult(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    try:
        await grow_topic(services.metadata, topic.name, topic.count, assignments, request.validate_only)
    except KafkaError as error:
        return CreatePartitionsTopicResult(topic.name, error.code, error.detail or None)
    return CreatePartitionsTopicResult(topic.name)
