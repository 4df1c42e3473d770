"""ListPartitionReassignments (46), version 0: the partitions that are being moved to other brokers (KIP-455).

Null topics request all partitions. The response omits partitions that are not being moved or do not exist, and topics
without others.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.metadata.image import MetadataImage, TopicImage
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    services: Services, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Steps[ListPartitionReassignmentsResponse]:
    image = services.metadata.image
    topics = []
    for name, indexes in _wanted(image, request):
        rows = []
        for index in indexes:
            row = _moving(image.topics[name], index)
            if row is not None:
                rows.append(row)
            yield
        if rows:
            topics.append(OngoingTopicReassignment(name, rows))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def error_response(
    request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message or None)


def _wanted(image: MetadataImage, request: ListPartitionReassignmentsRequest) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topics is None:
        return [(name, range(len(topic.partitions))) for name, topic in image.topics.items()]
    return [(topic.name, topic.partition_indexes) for topic in request.topics if topic.name in image.topics]


def _moving(topic: TopicImage, index: int) -> OngoingPartitionReassignment | None:
    partition = topic.partition(index)
    if partition is None or not (partition.adding_replicas or partition.removing_replicas):
        return None
    return OngoingPartitionReassignment(
        index, list(partition.replicas), list(partition.adding_replicas), list(partition.removing_replicas)
    )
