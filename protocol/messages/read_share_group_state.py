"""ReadShareGroupState (API key 84)."""

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, i64, i8, message, string, uuid


class PartitionData(Structure):
    partition: i32 = 0
    leader_epoch: i32 = 0


class ReadStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=84, versions=(0, 0), flexible_since=0)
class ReadShareGroupStateRequest(Message):
    """ReadShareGroupStateRequest, version 0, flexible."""

    group_id: string = ""
    topics: list[ReadStateData] = []


class StateBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_state: i8 = 0
    delivery_count: i16 = 0


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    state_epoch: i32 = 0
    start_offset: i64 = 0
    state_batches: list[StateBatch] = []


class ReadStateResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=84, versions=(0, 0), flexible_since=0)
class ReadShareGroupStateResponse(Message):
    """ReadShareGroupStateResponse, version 0, flexible."""

    results: list[ReadStateResult] = []
