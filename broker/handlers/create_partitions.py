"""CreatePartitions (37), versions 0–3: give topics more partitions (KIP-195), or with `validate_only` say if it works.

A topic says how many partitions it is to have in all; no more than now is INVALID_PARTITIONS. It may name the replicas
of each new one, as many as the others have, on brokers that serve: else INVALID_REPLICA_ASSIGNMENT. Each topic succeeds
or fails for itself: UNKNOWN_TOPIC_OR_PARTITION; one that is named twice is INVALID_REQUEST. More than 10,000 at once is
POLICY_VIOLATION. Versions 1 and 3 only say what the client understands of throttling, which there is not.

The answer goes out when this broker leads the new partitions that it will lead; if that takes longer than the timeout
they exist all the same, and REQUEST_TIMED_OUT says that they may not be usable yet.
"""

from __future__ import annotations

from collections import Counter

from broker.handlers.services import Services
from broker.metadata.topics import grow_topic
from broker.server.context import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import (
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
    results = [await _grow(services, request, topic, named[topic.name]) for topic in topics]
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
