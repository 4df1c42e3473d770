"""DescribeShareGroupOffsets (API key 90): an admin client reads the offsets of share groups (KIP-932)."""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    i16,
    i32,
    i64,
    ignorable,
    message,
    since,
    string,
    uuid,
)


class DescribeShareGroupOffsetsRequestTopic(Structure):
    topic_name: string = ""
    partitions: list[i32] = []


class DescribeShareGroupOffsetsRequestGroup(Structure):
    group_id: string = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []  # None for all


@message(key=90, versions=(0, 1), flexible_since=0)
class DescribeShareGroupOffsetsRequest(Message):
    """Versions 0–1, flexible; v1 changes only the response."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponsePartition(Structure):
    partition_index: i32 = 0
    start_offset: i64 = 0  # the first offset still to be delivered; -1: not determined yet
    leader_epoch: i32 = 0
    lag: Annotated[i64, since(1), ignorable] = -1  # records still to be delivered; -1 unknown
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
    """Versions 0–1, flexible; v1 adds the lag (KIP-1226)."""

    throttle_time_ms: i32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
