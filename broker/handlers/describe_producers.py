"""DescribeProducers (61), version 0: the idempotent producers of partitions (KIP-664).

Each partition succeeds or fails independently: TOPIC_AUTHORIZATION_FAILED without the right to read it,
INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER if another broker leads it. A producer is
removed producer.id.expiration.ms after its last record. A partition that is named twice has one row (differs from
Kafka: `request.repetitions`).
"""

from __future__ import annotations

from odradek.broker.metadata.administration.topic_names import check_name
from odradek.broker.request.context import RequestContext
from odradek.broker.request.repetitions import partitions_once
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.storage.producers.producer_state import ProducerEntry
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(
    services: Services, context: RequestContext, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    topics = []
    wanted = yield from partitions_once((topic.name, topic.partition_indexes) for topic in request.topics)
    for name, indexes in wanted.items():
        yield
        rows = []
        refused = refusal_of(services, context, Operation.READ, ResourceType.TOPIC, name)
        for index in indexes:
            if refused is not None:
                rows.append(PartitionResponse(index, refused.code, refused.detail))
            else:
                rows.append(_describe(services, name, index))
            yield
        topics.append(TopicResponse(name, rows))
    return DescribeProducersResponse(topics=topics)


def error_response(request: DescribeProducersRequest, code: ErrorCode, message: str) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                topic.name, [PartitionResponse(index, code, message or None) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(services: Services, topic: str, index: int) -> PartitionResponse:
    try:
        check_name(topic)
        partition = services.partitions.find(topic, index)
        if isinstance(partition, KafkaError):
            return PartitionResponse(index, partition.code, partition.detail)
        partition.check_serving()
    except KafkaError as error:
        return PartitionResponse(index, error.code, error.detail)
    return PartitionResponse(index, active_producers=[_producer(entry) for entry in partition.log.producers])


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        entry.producer_id,
        entry.epoch,
        entry.last_sequence,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
