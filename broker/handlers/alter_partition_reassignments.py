"""AlterPartitionReassignments (45), versions 0–1: move partitions to other brokers, or cancel that (KIP-455).

| replicas in the request | answer |
|---|---|
| of a partition that does not exist | UNKNOWN_TOPIC_OR_PARTITION |
| null: cancel the reassignment; none is running | NO_REASSIGNMENT_IN_PROGRESS |
| null; only added replicas are in sync, and the topic allows no unclean election | INVALID_REPLICA_ASSIGNMENT |
| none, one twice, or on an unknown broker | INVALID_REPLICA_ASSIGNMENT |
| another number of them, if version 1 forbids it (KIP-860) | INVALID_REPLICATION_FACTOR |
| any others | NONE: the reassignment has begun |

The response is sent when the beginning has reached this broker's image; the controller completes the reassignment when
the added replicas are in sync.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.metadata.leaders.requested_reassignments import WantedReplicas, reassign
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

_PARTITIONS_AT_ONCE = 60
"""As many as fit into one transaction."""


async def handle(
    services: Services, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    wanted = {
        (topic.name, partition.partition_index): WantedReplicas(
            topic.name, partition.partition_index, partition.replicas
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    errors: dict[tuple[str, int], KafkaError | None] = {}
    time_slice = services.time_slices.begin(context.connection)
    try:
        with time_limit(request.timeout_ms):
            keys = list(wanted)
            for first in range(0, len(keys), _PARTITIONS_AT_ONCE):
                await time_slice.step()
                chunk = keys[first : first + _PARTITIONS_AT_ONCE]
                errors |= await _reassign(services, [wanted[key] for key in chunk], request)
    finally:  # also for a client that has gone before the end
        services.topic_log.reassigned(context, Counter(topic for (topic, _), error in errors.items() if error is None))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [_row(each.partition_index, errors[topic.name, each.partition_index]) for each in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str
) -> AlterPartitionReassignmentsResponse:
    error = KafkaError(code, message)
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message or None,
        responses=[
            ReassignableTopicResponse(topic.name, [_row(each.partition_index, error) for each in topic.partitions])
            for topic in request.topics
        ],
    )


async def _reassign(
    services: Services, wanted: list[WantedReplicas], request: AlterPartitionReassignmentsRequest
) -> dict[tuple[str, int], KafkaError | None]:
    metadata = services.metadata
    errors: list[KafkaError | None]
    try:
        errors = await reassign(metadata, wanted, changes_factor=request.allow_replication_factor_change)
    except KafkaError as error:  # of the store: it concerns all of them
        errors = [error] * len(wanted)
    return {(each.topic, each.partition_index): error for each, error in zip(wanted, errors, strict=True)}


def _row(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(index, ErrorCode.NONE, None)
    return ReassignablePartitionResponse(index, error.code, error.detail)
