"""OffsetFetch (API key 9)."""

from typing import Annotated

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    boolean,
    i16,
    i32,
    i64,
    ignorable,
    message,
    nullable,
    since,
    string,
    until,
    uuid,
)


class OffsetFetchRequestTopic(Structure):
    name: Annotated[string, until(7)] = ""
    partition_indexes: Annotated[list[i32], until(7)] = []


class OffsetFetchRequestTopics(Structure):
    name: Annotated[string, since(8), until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partition_indexes: Annotated[list[i32], since(8)] = []


class OffsetFetchRequestGroup(Structure):
    group_id: Annotated[string, since(8)] = ""
    member_id: Annotated[string | None, since(9), ignorable] = None
    member_epoch: Annotated[i32, since(9), ignorable] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, since(8)] = []


@message(key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchRequest(Message):
    """OffsetFetchRequest, versions 1–10, flexible from 6."""

    group_id: Annotated[string, until(7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable(2)] = []
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = []
    require_stable: Annotated[boolean, since(7)] = False


class OffsetFetchResponsePartition(Structure):
    partition_index: Annotated[i32, until(7)] = 0
    committed_offset: Annotated[i64, until(7)] = 0
    committed_leader_epoch: Annotated[i32, since(5), until(7), ignorable] = -1
    metadata: Annotated[string | None, until(7)] = ""
    error_code: Annotated[i16, until(7)] = 0


class OffsetFetchResponseTopic(Structure):
    name: Annotated[string, until(7)] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], until(7)] = []


class OffsetFetchResponsePartitions(Structure):
    partition_index: Annotated[i32, since(8)] = 0
    committed_offset: Annotated[i64, since(8)] = 0
    committed_leader_epoch: Annotated[i32, since(8), ignorable] = -1
    metadata: Annotated[string | None, since(8)] = ""
    error_code: Annotated[i16, since(8)] = 0


class OffsetFetchResponseTopics(Structure):
    name: Annotated[string, since(8), until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], since(8)] = []


class OffsetFetchResponseGroup(Structure):
    group_id: Annotated[string, since(8)] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], since(8)] = []
    error_code: Annotated[i16, since(8)] = 0


@message(key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchResponse(Message):
    """OffsetFetchResponse, versions 1–10, flexible from 6."""

    throttle_time_ms: Annotated[i32, since(3), ignorable] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[i16, since(2), until(7), ignorable] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
