"""ReadShareGroupState (API key 84): a partition's new leader reads the progress of share groups (KIP-932).

Brokers send it to the share coordinator.
"""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i8, i16, i32, i64, message, string, uuid


class PartitionData(Structure):
    partition: i32 = 0
    leader_epoch: i32 = 0  # the reader's; older leaders are fenced from then on


class ReadStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=84, versions=(0, 0), flexible_since=0)
class ReadShareGroupStateRequest(Message):
    """Version 0, flexible."""

    group_id: string = ""
    topics: list[ReadStateData] = []


class StateBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0  # inclusive
    delivery_state: i8 = 0  # 0 available, 2 acknowledged, 4 archived
    delivery_count: i16 = 0


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    state_epoch: i32 = 0
    start_offset: i64 = 0  # the first offset still to be delivered; -1: not determined yet
    state_batches: list[StateBatch] = []


class ReadStateResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=84, versions=(0, 0), flexible_since=0)
class ReadShareGroupStateResponse(Message):
    """Version 0, flexible."""

    results: list[ReadStateResult] = []
