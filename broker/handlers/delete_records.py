"""DeleteRecords (21), versions 0–2: delete the oldest records of partitions, up to an offset (KIP-107).

The log start offset moves to the offset in the request, -1 for the high watermark; an offset below the current log
start offset changes nothing. The response has the low watermark: the smallest log start offset of all live replicas,
with a single replica its own. It is sent when the low watermarks of all partitions have reached the offsets, or after
the timeout of the request. The next round of retention deletes the segments that are wholly below it.

| partition | error |
|---|---|
| belongs to a topic that the client may not delete | TOPIC_AUTHORIZATION_FAILED |
| does not exist | UNKNOWN_TOPIC_OR_PARTITION |
| is led by another broker | NOT_LEADER_OR_FOLLOWER |
| belongs to an internal topic | INVALID_TOPIC_EXCEPTION |
| has the cleanup.policy compact only | POLICY_VIOLATION |
| has a live replica that did not follow before the timeout | REQUEST_TIMED_OUT |
| has a high watermark below the offset, or the offset is below -1 | OFFSET_OUT_OF_RANGE |

A partition that is named twice counts once, with its last offset; the response omits topics without partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from itertools import islice
from typing import NamedTuple

from odradek.broker.metadata.administration.topic_names import INTERNAL_TOPICS
from odradek.broker.purgatory import DelayedOperation
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.record_deletion import delete_records, low_watermark
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation, ResourceType
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


class _Pending(NamedTuple):
    """A deletion that other replicas must follow."""

    row: DeleteRecordsPartitionResult
    partition: Partition
    offset: int


async def handle(services: Services, context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    topics = []
    pending: list[_Pending] = []
    time_slice = services.time_slices.begin(context.connection)
    for name, offsets in _offsets(request).items():
        results: list[DeleteRecordsPartitionResult] = []
        refused = refusal_of(services, context, Operation.DELETE, ResourceType.TOPIC, name)
        if refused is not None:
            await time_slice.step()
            results = [DeleteRecordsPartitionResult(index, _NO_OFFSET, refused.code) for index in offsets]
            offsets = {}
        wanted = iter(offsets.items())
        while some := list(islice(wanted, _AT_ONCE)):
            await time_slice.step()
            results += await asyncio.gather(
                *[_delete(services, name, index, offset, pending) for index, offset in some]
            )
        topics.append(DeleteRecordsTopicResult(name, results))
    if pending:
        delayed = DelayedDeletion(pending)
        if not delayed.is_complete():
            keys = [each.partition for each in pending]
            await services.deletion_purgatory.park(delayed, keys, request.timeout_ms)
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


async def _delete(
    services: Services, topic: str, index: int, offset: int, pending: list[_Pending]
) -> DeleteRecordsPartitionResult:
    """Delete on this broker, the leader; add to `pending` if other replicas must follow."""
    partition = services.partitions.find(topic, index)
    if isinstance(partition, KafkaError):
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, partition.code)
    if topic in INTERNAL_TOPICS:
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        offset = await delete_records(partition, offset)
        row = DeleteRecordsPartitionResult(index, low_watermark(partition))
    except KafkaError as error:
        return DeleteRecordsPartitionResult(index, _NO_OFFSET, error.code)
    if row.low_watermark < offset:
        pending.append(_Pending(row, partition, offset))
    return row


class DelayedDeletion(DelayedOperation[None]):
    """A response that waits until every live replica begins at the new start of its log, or until the timeout."""

    def __init__(self, pending: list[_Pending]) -> None:
        self._pending = pending

    def is_complete(self) -> bool:
        """Update the rows that wait; return whether none is left."""
        waiting = []
        for each in self._pending:
            try:
                reached = low_watermark(each.partition)
            except KafkaError as error:
                each.row.error_code, each.row.low_watermark = error.code, _NO_OFFSET
                continue
            if reached < each.offset:
                waiting.append(each)
            else:
                each.row.low_watermark = reached
        self._pending = waiting
        return not waiting

    def is_ready(self, key: Hashable) -> bool:  # noqa: ARG002 - all rows are checked
        return self.is_complete()

    def answer(self) -> None:
        if not self.is_complete():
            for each in self._pending:
                each.row.error_code = ErrorCode.REQUEST_TIMED_OUT
