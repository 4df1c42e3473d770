"""DescribeShareGroupOffsets (API key 90)."""

from typing import Annotated

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, i64, ignorable, message, since, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Structure):
    topic_name: string = ""
    partitions: list[i32] = []


class DescribeShareGroupOffsetsRequestGroup(Structure):
    group_id: string = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []


@message(key=90, versions=(0, 1), flexible_since=0)
class DescribeShareGroupOffsetsRequest(Message):
    """DescribeShareGroupOffsetsRequest, versions 0–1, flexible."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponsePartition(Structure):
    partition_index: i32 = 0
    start_offset: i64 = 0
    leader_epoch: i32 = 0
    lag: Annotated[i64, since(1), ignorable] = -1
    error_code: i16 = 0
    error_message: string | None = None


class DescribeShareGroupOffsetsResponseTopic(Structure):
    topic_name: string = ""
    topic_id: uuid = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []


class DescribeShareGroupOffsetsResponseGroup(Structure):
    group_id: string = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: i16 = 0
    error_message: string | None = None


@message(key=90, versions=(0, 1), flexible_since=0)
class DescribeShareGroupOffsetsResponse(Message):
    """DescribeShareGroupOffsetsResponse, versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
