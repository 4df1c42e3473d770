"""OffsetDelete (47), version 0: delete a group's committed offsets of some partitions (KIP-496).

A group that does not exist is GROUP_ID_NOT_FOUND; one with members that are not consumers is NON_EMPTY_GROUP. A topic
or partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION for its rows; a topic that a member reads is
GROUP_SUBSCRIBED_TO_TOPIC. A partition without a committed offset is no error. Without the right to delete the group the
request is GROUP_AUTHORIZATION_FAILED; without that to read a topic its rows are TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import asyncio
from typing import cast

from odradek.broker.coordinator.offsets.events import DeleteOffsets
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check, refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import TimeSlice
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(services: Services, context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    check(services, context, Operation.DELETE, ResourceType.GROUP, request.group_id)
    time_slice = services.time_slices.begin(context.connection)
    known: list[OffsetDeleteRequestTopic] = []
    response = OffsetDeleteResponse(topics=[])
    for topic in request.topics:
        await time_slice.step()
        refused = refusal_of(services, context, Operation.READ, ResourceType.TOPIC, topic.name)
        if refused is not None:
            rows = [OffsetDeleteResponsePartition(each.partition_index, refused.code) for each in topic.partitions]
            response.topics.append(OffsetDeleteResponseTopic(topic.name, rows))
            continue
        existing, missing = await _split(services, time_slice, topic)
        if existing:
            known.append(OffsetDeleteRequestTopic(topic.name, existing))
        if missing:
            response.topics.append(OffsetDeleteResponseTopic(topic.name, missing))
    answer = services.groups.submit(request.group_id, DeleteOffsets(PendingReply(), known, response))
    return cast("OffsetDeleteResponse", await answer if isinstance(answer, asyncio.Future) else answer)


def error_response(request: OffsetDeleteRequest, code: ErrorCode, message: str) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)


async def _split(
    services: Services, time_slice: TimeSlice, topic: OffsetDeleteRequestTopic
) -> tuple[list[OffsetDeleteRequestPartition], list[OffsetDeleteResponsePartition]]:
    """Return the partitions of `topic` that exist, and the rows of those that do not."""
    image = services.metadata.image.topics.get(topic.name)
    existing, missing = [], []
    for partition in topic.partitions:
        await time_slice.step()
        if image is not None and image.partition(partition.partition_index) is not None:
            existing.append(partition)
        else:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing.append(OffsetDeleteResponsePartition(partition.partition_index, code))
    return existing, missing
