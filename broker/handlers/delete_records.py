"""DeleteRecords (21), versions 0–2: delete the oldest records of partitions, up to an offset (KIP-107).

The log start offset moves to the offset in the request, -1 for the high watermark; an offset below the current log
start offset changes nothing. The response has the low watermark: the smallest log start offset of all live replicas,
with a single replica its own. The next round of retention deletes the segments that are wholly below it.

| partition | error |
|---|---|
| does not exist | UNKNOWN_TOPIC_OR_PARTITION |
| is led by another broker | NOT_LEADER_OR_FOLLOWER |
| belongs to an internal topic | INVALID_TOPIC_EXCEPTION |
| has the cleanup.policy compact only | POLICY_VIOLATION |
| has a high watermark below the offset, or the offset is below -1 | OFFSET_OUT_OF_RANGE |

A partition that is named twice counts once, with its last offset; the response omits topics without partitions.
"""

from __future__ import annotations

import asyncio
from itertools import islice

from odradek.broker.metadata.topic_names import INTERNAL_TOPICS
from odradek.broker.replication.record_deletion import delete_records
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
"""Partitions whose records are deleted at the same time; each waits for its writer thread."""


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
    """The offsets in the request, by topic and partition."""
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
        low_watermark = await delete_records(partition, offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, error.code)
    return DeleteRecordsPartitionResult(index, low_watermark)
