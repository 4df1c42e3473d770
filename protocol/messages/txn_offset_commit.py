"""TxnOffsetCommit (API key 28)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i64, ignorable, message, since, string


class TxnOffsetCommitRequestPartition(Structure):
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: Annotated[i32, since(2), ignorable] = -1
    committed_metadata: string | None = ""


class TxnOffsetCommitRequestTopic(Structure):
    name: string = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


@message(key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitRequest(Message):
    """TxnOffsetCommitRequest, versions 0–5, flexible from 3."""

    transactional_id: string = ""
    group_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    generation_id: Annotated[i32, since(3)] = -1
    member_id: Annotated[string, since(3)] = ""
    group_instance_id: Annotated[string | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0


class TxnOffsetCommitResponseTopic(Structure):
    name: string = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


@message(key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitResponse(Message):
    """TxnOffsetCommitResponse, versions 0–5, flexible from 3."""

    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
