"""DeleteShareGroupState (API key 86): a group coordinator deletes the state of share partitions (KIP-932).

Brokers send it to the share coordinator.
"""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, message, string, uuid


class PartitionData(Structure):
    partition: i32 = 0


class DeleteStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=86, versions=(0, 0), flexible_since=0)
class DeleteShareGroupStateRequest(Message):
    """Version 0, flexible."""

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
    """Version 0, flexible."""

    results: list[DeleteStateResult] = []
