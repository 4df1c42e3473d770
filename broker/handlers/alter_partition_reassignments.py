"""AlterPartitionReassignments (45), versions 0–1: move partitions to other brokers, or cancel that (KIP-455).

| replicas in the request | answer |
|---|---|
| of a partition that does not exist | UNKNOWN_TOPIC_OR_PARTITION |
| null: cancel the reassignment | NO_REASSIGNMENT_IN_PROGRESS |
| none, one twice, or on a broker that is not alive | INVALID_REPLICA_ASSIGNMENT |
| another number of them, if version 1 forbids it (KIP-860) | INVALID_REPLICATION_FACTOR |
| the current ones | NONE |
| others | INVALID_REPLICA_ASSIGNMENT |

Differs from Kafka in the last line: replicas cannot be moved yet. A cluster of one broker has no other place for them.
"""

from __future__ import annotations

from odradek.broker.metadata.placement import Candidates, check_replicas
from odradek.broker.metadata.topics import find_partition
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.plural import pluralize


def handle(
    services: Services, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Steps[AlterPartitionReassignmentsResponse]:
    responses = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            rows.append(_reassign(services, request, topic.name, partition))
            yield
        responses.append(ReassignableTopicResponse(topic.name, rows))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=message or None)


def _reassign(
    services: Services, request: AlterPartitionReassignmentsRequest, topic: str, wanted: ReassignablePartition
) -> ReassignablePartitionResponse:
    try:
        _check(services, request, topic, wanted)
    except KafkaError as error:
        return ReassignablePartitionResponse(wanted.partition_index, error.code, error.detail)
    return ReassignablePartitionResponse(wanted.partition_index, ErrorCode.NONE, None)


def _check(
    services: Services, request: AlterPartitionReassignmentsRequest, topic: str, wanted: ReassignablePartition
) -> None:
    image = services.metadata.image
    partition = find_partition(image, topic, wanted.partition_index)
    if wanted.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{topic}-{wanted.partition_index} is not being moved")
    check_replicas(wanted.partition_index, wanted.replicas, Candidates.of(image))
    if len(wanted.replicas) != len(partition.replicas) and not request.allow_replication_factor_change:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the partition has {pluralize(len(partition.replicas), 'replica')}, not {len(wanted.replicas)}",
        )
    if wanted.replicas != partition.replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the replicas stay on {partition.replicas}: they cannot be moved"
        )
