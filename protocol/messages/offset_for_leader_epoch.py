"""OffsetForLeaderEpoch (API key 23)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i64, ignorable, message, since, string


class OffsetForLeaderPartition(Structure):
    partition: i32 = 0
    current_leader_epoch: i32 = -1
    leader_epoch: i32 = 0


class OffsetForLeaderTopic(Structure):
    topic: string = ""
    partitions: list[OffsetForLeaderPartition] = []


@message(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest(Message):
    """OffsetForLeaderEpochRequest, versions 2–4, flexible from 4."""

    replica_id: Annotated[i32, since(3), ignorable] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Structure):
    error_code: i16 = 0
    partition: i32 = 0
    leader_epoch: i32 = -1
    end_offset: i64 = -1


class OffsetForLeaderTopicResult(Structure):
    topic: string = ""
    partitions: list[EpochEndOffset] = []


@message(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochResponse(Message):
    """OffsetForLeaderEpochResponse, versions 2–4, flexible from 4."""

    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
