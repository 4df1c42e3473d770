"""OffsetCommit (API key 8)."""

from typing import Annotated

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, i64, ignorable, message, since, string, until, uuid


class OffsetCommitRequestPartition(Structure):
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(6), ignorable] = -1
    committed_metadata: string | None = ""


class OffsetCommitRequestTopic(Structure):
    name: Annotated[string, until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


@message(key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest(Message):
    """OffsetCommitRequest, versions 2–10, flexible from 8."""

    group_id: string = ""
    generation_id_or_member_epoch: i32 = -1
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(7)] = None
    retention_time_ms: Annotated[i64, until(4), ignorable] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0


class OffsetCommitResponseTopic(Structure):
    name: Annotated[string, until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


@message(key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitResponse(Message):
    """OffsetCommitResponse, versions 2–10, flexible from 8."""

    throttle_time_ms: Annotated[i32, since(3), ignorable] = 0
    topics: list[OffsetCommitResponseTopic] = []
