"""OffsetDelete (47), version 0: take a group's committed offsets of some partitions back (KIP-496).

A group that does not exist is GROUP_ID_NOT_FOUND, one with members that are no consumers NON_EMPTY_GROUP. A topic that
does not exist is UNKNOWN_TOPIC_OR_PARTITION for its rows, one that a member reads GROUP_SUBSCRIBED_TO_TOPIC. Where
nothing was committed nothing is deleted, which is no error.
"""

from __future__ import annotations

import asyncio
from typing import cast

from broker.coordinator.group_type import Ticket
from broker.coordinator.offset_events import DeleteOffsets
from broker.handlers.services import Services
from broker.server.context import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(
    services: Services, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | asyncio.Future[OffsetDeleteResponse]:
    known = [topic for topic in request.topics if topic.name in services.metadata.image.topics]
    unknown = [_unknown(topic) for topic in request.topics if topic.name not in services.metadata.image.topics]
    response = OffsetDeleteResponse(topics=unknown)
    answer = services.groups.submit(request.group_id, DeleteOffsets(Ticket(), known, response))
    return cast("OffsetDeleteResponse | asyncio.Future[OffsetDeleteResponse]", answer)


def error_response(request: OffsetDeleteRequest, code: ErrorCode, message: str) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)


def _unknown(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rows = [OffsetDeleteResponsePartition(partition.partition_index, code) for partition in topic.partitions]
    return OffsetDeleteResponseTopic(topic.name, rows)
