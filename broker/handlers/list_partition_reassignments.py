"""ListPartitionReassignments (46), version 0: which partitions are on their way to other brokers (KIP-455).

Null topics ask for all partitions. Partitions that are not being moved, or do not exist, are left out, and topics
without any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.handlers.services import Services
from broker.metadata.image import MetadataImage
from broker.server.context import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    services: Services, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    image = services.metadata.image
    topics = [
        OngoingTopicReassignment(name, _moving(image, name, indexes)) for name, indexes in _wanted(image, request)
    ]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in topics if topic.partitions]
    )


def error_response(
    request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message or None)


def _wanted(image: MetadataImage, request: ListPartitionReassignmentsRequest) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topics is None:
        return [(name, range(len(topic.partitions))) for name, topic in image.topics.items()]
    return [(topic.name, topic.partition_indexes) for topic in request.topics if topic.name in image.topics]


def _moving(image: MetadataImage, name: str, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    topic = image.topics[name]
    found = ((index, topic.partition(index)) for index in indexes)
    return [
        OngoingPartitionReassignment(
            index, list(partition.replicas), list(partition.adding_replicas), list(partition.removing_replicas)
        )
        for index, partition in found
        if partition is not None and (partition.adding_replicas or partition.removing_replicas)
    ]
