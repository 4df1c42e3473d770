"""OffsetCommit (8), versions 2–10: store how far a group has read; answered when the commit is in the log.

A topic or partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION for its rows; from version 10 on, where topics
have ids (KIP-848), such a topic is UNKNOWN_TOPIC_ID. A topic that the client may not read is
TOPIC_AUTHORIZATION_FAILED, by id and without Describe UNKNOWN_TOPIC_ID; without the right to read the group every row
is GROUP_AUTHORIZATION_FAILED. Metadata longer than offset.metadata.max.bytes is OFFSET_METADATA_TOO_LARGE. The other
rows are committed nevertheless. The group decides whether the client may commit: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
FENCED_INSTANCE_ID or REBALANCE_IN_PROGRESS for every row. Generation -1 without a member id commits for a group without
members. Up to version 4 the request may have a retention time for the offsets (KIP-211).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import cast

from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.offsets.committed_offsets import NO_EXPIRY, metadata_length
from odradek.broker.coordinator.offsets.events import CommitOffsets
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.metadata.image import TopicImage
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check, refusal_of_topic
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.varint import INT64_MAX

_FIRST_VERSION_WITH_TOPIC_IDS = 10
_NOT_WRITTEN = -1
_LONG = 100
"""A request with more topics and partitions is executed in slices."""
_REFUSED_HERE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)

Answer = OffsetCommitResponse | asyncio.Future[OffsetCommitResponse]


def handle(
    services: Services, context: RequestContext, request: OffsetCommitRequest
) -> Answer | Awaitable[OffsetCommitResponse]:
    """Answer at once if the request is short, as nearly all commits are."""
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    steps = _submit(services, context, request)
    if len(request.topics) + sum([len(topic.partitions) for topic in request.topics]) > _LONG:
        return _in_slices(services, context, steps)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("Answer", end.value)


async def _in_slices(services: Services, context: RequestContext, steps: Steps[Answer]) -> OffsetCommitResponse:
    answer = await services.time_slices.finish(steps, context.connection)
    return await answer if isinstance(answer, asyncio.Future) else answer


def _submit(services: Services, context: RequestContext, request: OffsetCommitRequest) -> Steps[Answer]:
    by_id = context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS
    now_ms = services.clock.time_ms()
    keep_ms = request.retention_time_ms
    expires_at_ms = NO_EXPIRY if keep_ms == NO_EXPIRY else min(now_ms + keep_ms, INT64_MAX)
    longest = services.config.offset_metadata_max_bytes
    response = OffsetCommitResponse(topics=[])
    commits: dict[tuple[str, int], CommittedOffset] = {}  # the last one counts for a partition that is named twice
    known = False
    for wanted in request.topics:
        yield
        topic = _topic(services, wanted, by_id)
        refused = refusal_of_topic(services, context, Operation.READ, wanted.name, wanted.topic_id, by_id=by_id)
        rows = []
        for partition in wanted.partitions:
            yield
            code = _error_of(topic, partition, longest, by_id) if refused is None else refused.code
            rows.append(OffsetCommitResponsePartition(partition.partition_index, code))
            if topic is not None and code is ErrorCode.NONE:
                committed = _committed(partition, now_ms, expires_at_ms, topic.topic_id)
                commits[topic.name, partition.partition_index] = committed
            known = known or code not in _REFUSED_HERE
        response.topics.append(OffsetCommitResponseTopic(wanted.name, wanted.topic_id, rows))
    if not known:
        return response  # the group has nothing to decide
    committer = Committer(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.api_version,
        is_transactional=False,
    )
    offsets = [(*key, committed) for key, committed in commits.items()]
    return cast(
        "Answer", services.groups.submit(request.group_id, CommitOffsets(PendingReply(), committer, offsets, response))
    )


def error_response(request: OffsetCommitRequest, code: ErrorCode, message: str) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [OffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return OffsetCommitResponse(topics=topics)


def _topic(services: Services, wanted: OffsetCommitRequestTopic, by_id: bool) -> TopicImage | None:
    image = services.metadata.image
    return image.topics_by_id.get(wanted.topic_id) if by_id else image.topics.get(wanted.name)


def _error_of(
    topic: TopicImage | None, partition: OffsetCommitRequestPartition, longest: int, by_id: bool
) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.partition(partition.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.committed_metadata is not None and metadata_length(partition.committed_metadata) > longest:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committed(
    partition: OffsetCommitRequestPartition, now_ms: int, expires_at_ms: int, topic_id: bytes
) -> CommittedOffset:
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        expires_at_ms,
        topic_id,
        _NOT_WRITTEN,
    )
