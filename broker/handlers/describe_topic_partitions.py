"""DescribeTopicPartitions (75), version 0: topics and their partitions, page by page (KIP-966).

Topics come in the order of their names; without names, all of them. A page has at most as many partitions as the
request and max.request.partition.size.limit allow, but at least one; `next_cursor` is the topic and partition of the
next page. A cursor whose topic is not among the named ones, or whose partition is negative, is INVALID_REQUEST for
every topic. A named topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION or INVALID_TOPIC_EXCEPTION.

`eligible_leader_replicas` are out of sync and have every committed record. `last_known_elr` is empty, because these
replicas are not stored across an unclean stop. A partition without a leader has leader -1 and no error, as in Kafka.

A named topic without the right to describe it is TOPIC_AUTHORIZATION_FAILED; among all topics it is omitted.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.handlers.metadata import missing_topic_error
from odradek.broker.metadata.administration.topic_names import INTERNAL_TOPICS
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.request.authorized_operations import NOT_REQUESTED, operations_on_topic
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_topic, refused
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_NO_LEADER = -1


def handle(
    services: Services, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    image = services.metadata.image
    cursor = request.cursor or Cursor()
    named = {topic.name for topic in request.topics}
    yield
    if request.cursor is not None:
        _check_cursor(cursor, named)
    names = [name for name in named or image.topics if name >= cursor.topic_name]
    yield
    names.sort()
    yield
    limit = max(1, min(request.response_partition_limit, services.config.max_request_partition_size_limit))
    return (yield from _page(services, context, names, cursor, limit, are_named=bool(named)))


def error_response(
    request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(code, topic.name) for topic in request.topics]
    )


def _check_cursor(cursor: Cursor, named: set[str]) -> None:
    if named and cursor.topic_name not in named:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the cursor's topic {cursor.topic_name!r} is not among the named topics"
        )
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the cursor's partition is {cursor.partition_index}")


def _page(
    services: Services, context: RequestContext, names: Iterable[str], cursor: Cursor, limit: int, *, are_named: bool
) -> Steps[DescribeTopicPartitionsResponse]:
    image = services.metadata.image
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        yield
        is_visible = allows_on_topic(services, context, Operation.DESCRIBE, name)
        if not (is_visible or are_named):
            continue
        if limit == 0:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, 0))
        if not is_visible:
            code = refused(services, context, Operation.DESCRIBE, ResourceType.TOPIC, name).code
            topics.append(DescribeTopicPartitionsResponseTopic(code, name, topic_authorized_operations=NOT_REQUESTED))
            continue
        topic = image.topics.get(name)
        operations = operations_on_topic(services, context, name)
        if topic is None:
            internal = name in INTERNAL_TOPICS
            topics.append(
                DescribeTopicPartitionsResponseTopic(
                    missing_topic_error(name),
                    name,
                    is_internal=internal,
                    topic_authorized_operations=operations,
                )
            )
            continue
        first = cursor.partition_index if name == cursor.topic_name else 0
        end = min(first + limit, len(topic.partitions))
        topics.append(_topic(image, topic, range(first, end), operations))
        if end < len(topic.partitions):
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, end))
        limit -= max(0, end - first)
    return DescribeTopicPartitionsResponse(topics=topics)


def _topic(
    image: MetadataImage, topic: TopicImage, indexes: range, operations: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        ErrorCode.NONE,
        topic.name,
        topic.topic_id,
        topic.name in INTERNAL_TOPICS,
        [_partition(image, index, topic.partitions[index]) for index in indexes],
        operations,
    )


def _partition(image: MetadataImage, index: int, partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        ErrorCode.NONE,
        index,
        partition.leader if partition.leader in image.brokers else _NO_LEADER,
        partition.leader_epoch,
        list(partition.replicas),
        list(partition.isr),
        list(partition.eligible_leader_replicas),
        [],
        [replica for replica in partition.replicas if replica not in image.brokers],
    )
