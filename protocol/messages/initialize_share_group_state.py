"""InitializeShareGroupState (API key 83)."""

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, i64, message, string, uuid


class PartitionData(Structure):
    partition: i32 = 0
    state_epoch: i32 = 0
    start_offset: i64 = 0


class InitializeStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=83, versions=(0, 0), flexible_since=0)
class InitializeShareGroupStateRequest(Message):
    """InitializeShareGroupStateRequest, version 0, flexible."""

    group_id: string = ""
    topics: list[InitializeStateData] = []


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None


class InitializeStateResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=83, versions=(0, 0), flexible_since=0)
class InitializeShareGroupStateResponse(Message):
    """InitializeShareGroupStateResponse, version 0, flexible."""

    results: list[InitializeStateResult] = []
