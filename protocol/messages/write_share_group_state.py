"""WriteShareGroupState (API key 85)."""

from typing import Annotated

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, i64, i8, ignorable, message, since, string, uuid


class StateBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_state: i8 = 0
    delivery_count: i16 = 0


class PartitionData(Structure):
    partition: i32 = 0
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: Annotated[i32, since(1), ignorable] = -1
    state_batches: list[StateBatch] = []


class WriteStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=85, versions=(0, 1), flexible_since=0)
class WriteShareGroupStateRequest(Message):
    """WriteShareGroupStateRequest, versions 0–1, flexible."""

    group_id: string = ""
    topics: list[WriteStateData] = []


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None


class WriteStateResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=85, versions=(0, 1), flexible_since=0)
class WriteShareGroupStateResponse(Message):
    """WriteShareGroupStateResponse, versions 0–1, flexible."""

    results: list[WriteStateResult] = []
