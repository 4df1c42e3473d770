"""ListOffsets (API key 2)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i64, i8, ignorable, message, since, string


class ListOffsetsPartition(Structure):
    partition_index: i32 = 0
    current_leader_epoch: Annotated[i32, since(4), ignorable] = -1
    timestamp: i64 = 0


class ListOffsetsTopic(Structure):
    name: string = ""
    partitions: list[ListOffsetsPartition] = []


@message(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest(Message):
    """ListOffsetsRequest, versions 1–11, flexible from 6."""

    replica_id: i32 = 0
    isolation_level: Annotated[i8, since(2)] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[i32, since(10), ignorable] = 0


class ListOffsetsPartitionResponse(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    timestamp: i64 = -1
    offset: i64 = -1
    leader_epoch: Annotated[i32, since(4)] = -1


class ListOffsetsTopicResponse(Structure):
    name: string = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@message(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsResponse(Message):
    """ListOffsetsResponse, versions 1–11, flexible from 6."""

    throttle_time_ms: Annotated[i32, since(2), ignorable] = 0
    topics: list[ListOffsetsTopicResponse] = []
