"""TxnOffsetCommit (API key 28): a producer commits consumed offsets as part of its transaction (KIP-98).

The coordinator of the consumer's group keeps them pending until the transaction's marker arrives. So consume,
transform, produce happens exactly once.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i16, i32, i64, ignorable, message, since, string


class TxnOffsetCommitRequestPartition(Structure):
    partition_index: i32 = 0
    committed_offset: i64 = 0  # the next record to read
    committed_leader_epoch: Annotated[i32, since(2), ignorable] = -1  # of the last record read; -1 unknown
    committed_metadata: string | None = ""  # any text


class TxnOffsetCommitRequestTopic(Structure):
    name: string = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


@message(key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitRequest(Message):
    """Versions 0–5, flexible from 3.

    v2 adds the epoch of the last record (KIP-320). v3 adds member and generation of the consumer, by which the group
    fences zombies, so that one transactional producer for all partitions is enough (KIP-447). With v1 and v4 the client
    declares what it supports: waiting for the throttle time itself (KIP-219), TRANSACTION_ABORTABLE (KIP-890). v5 adds
    the group to the transaction; before, AddOffsetsToTxn had to (KIP-890, part 2).
    """

    transactional_id: string = ""
    group_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    generation_id: Annotated[i32, since(3)] = -1  # or member epoch; -1: not checked
    member_id: Annotated[string, since(3)] = ""  # empty: not checked
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
    """Versions 0–5, flexible from 3.

    From v1 on the client itself waits for the throttle time (KIP-219). v3 may return ILLEGAL_GENERATION (22),
    FENCED_INSTANCE_ID (82) and UNKNOWN_MEMBER_ID (25) (KIP-447), v4 TRANSACTION_ABORTABLE (KIP-890).
    """

    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
