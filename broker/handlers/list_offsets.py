"""ListOffsets (2), versions 1–11: offsets by timestamp, or by a special one of `replication.offset_lookup`.

A special timestamp in a version before the one that brought it is UNSUPPORTED_VERSION for its partition, and so is
one that does not exist. A partition named twice is INVALID_REQUEST. `read_committed` (from version 2 on) ends at the
last stable offset. From version 4 on a client may name its leader epoch (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)
and is told that of the offset. The timeout of version 10 is for look-ups in tiered storage, which there is not.
"""

from __future__ import annotations

from collections import Counter

from broker.handlers.services import Services
from broker.replication.offset_lookup import FIRST_VERSIONS, find_offset
from broker.server.context import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_READ_COMMITTED = 1
_NEVER = 0x7FFF
_FIRST_VERSION_WITH_LEADER_EPOCH = 4


def handle(services: Services, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    named = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    topics = []
    for topic in request.topics:
        rows = []
        for wanted in topic.partitions:
            try:
                _check_named_once(named[topic.name, wanted.partition_index])
                rows.append(_look_up(services, context.api_version, request.isolation_level, topic.name, wanted))
            except KafkaError as error:
                rows.append(ListOffsetsPartitionResponse(wanted.partition_index, error.code))
        topics.append(ListOffsetsTopicResponse(topic.name, rows))
    return ListOffsetsResponse(topics=topics)


def error_response(request: ListOffsetsRequest, code: ErrorCode, message: str) -> ListOffsetsResponse:
    topics = [
        ListOffsetsTopicResponse(
            topic.name, [ListOffsetsPartitionResponse(wanted.partition_index, code) for wanted in topic.partitions]
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def _check_named_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"it is named {times} times")


def _look_up(
    services: Services, version: int, isolation_level: int, topic: str, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if wanted.timestamp < 0 and version < FIRST_VERSIONS.get(wanted.timestamp, _NEVER):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"version {version} has no timestamp {wanted.timestamp}")
    found = find_offset(
        services.partitions.get(topic, wanted.partition_index),
        wanted.timestamp,
        read_committed=isolation_level == _READ_COMMITTED,
        current_leader_epoch=wanted.current_leader_epoch,
    )
    return ListOffsetsPartitionResponse(
        wanted.partition_index,
        ErrorCode.NONE,
        found.timestamp,
        found.offset,
        found.leader_epoch if version >= _FIRST_VERSION_WITH_LEADER_EPOCH else -1,
    )
