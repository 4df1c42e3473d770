"""DeleteRecords (21), versions 0–2: delete the oldest records of partitions, up to an offset (KIP-107).

The log start offset moves to the offset asked for, -1 for the high watermark; one that the log has already passed
changes nothing. The answer has the low watermark: the smallest log start offset of all live replicas, which for a lone
one is its own. Segments that are wholly below it are deleted by the next round of retention.

| a partition | error |
|---|---|
| that does not exist | UNKNOWN_TOPIC_OR_PARTITION |
| led by another broker | NOT_LEADER_OR_FOLLOWER |
| of an internal topic | INVALID_TOPIC_EXCEPTION |
| whose cleanup.policy is compact alone | POLICY_VIOLATION |
| whose high watermark is below the offset, or the offset below -1 | OFFSET_OUT_OF_RANGE |

A partition that is named twice counts once, as it was named last; a topic without partitions is left out of the answer.
"""

from __future__ import annotations

import asyncio
from itertools import islice

from odradek.broker.metadata.topic_names import INTERNAL_TOPICS
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_NO_OFFSET = -1
_AT_ONCE = 50
"""Partitions whose records are deleted side by side, since each waits for its writer."""


async def handle(services: Services, context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    topics = []
    time_slice = services.time_slices.begin(context.connection)
    for name, offsets in _offsets(request).items():
        results: list[DeleteRecordsPartitionResult] = []
        wanted = iter(offsets.items())
        while some := list(islice(wanted, _AT_ONCE)):
            await time_slice.step()
            results += await asyncio.gather(*[_delete(services, name, index, offset) for index, offset in some])
        topics.append(DeleteRecordsTopicResult(name, results))
    return DeleteRecordsResponse(topics=topics)


def error_response(request: DeleteRecordsRequest, code: ErrorCode, message: str) -> DeleteRecordsResponse:
    topics = [
        DeleteRecordsTopicResult(name, [DeleteRecordsPartitionResult(index, _NO_OFFSET, code) for index in offsets])
        for name, offsets in _offsets(request).items()
    ]
    return DeleteRecordsResponse(topics=topics)


def _offsets(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """The offsets asked for, by topic and partition."""
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            offsets.setdefault(topic.name, {})[partition.partition_index] = partition.offset
    return offsets


async def _delete(services: Services, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    partition = services.partitions.find(topic, index)
    if isinstance(partition, KafkaError):
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, partition.code)
    if topic in INTERNAL_TOPICS:
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        low_watermark = await partition.delete_records(offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, error.code)
    return DeleteRecordsPartitionResult(index, low_watermark)
