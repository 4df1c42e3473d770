"""DeleteShareGroupState (API key 86)."""

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, message, string, uuid


class PartitionData(Structure):
    partition: i32 = 0


class DeleteStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=86, versions=(0, 0), flexible_since=0)
class DeleteShareGroupStateRequest(Message):
    """DeleteShareGroupStateRequest, version 0, flexible."""

    group_id: string = ""
    topics: list[DeleteStateData] = []


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None


class DeleteStateResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=86, versions=(0, 0), flexible_since=0)
class DeleteShareGroupStateResponse(Message):
    """DeleteShareGroupStateResponse, version 0, flexible."""

    results: list[DeleteStateResult] = []
