"""InitializeShareGroupState (API key 83): a group coordinator creates the state of share partitions (KIP-932).

Brokers send it to the share coordinator, which stores the state in `__share_group_state`.
"""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, i64, message, string, uuid


class PartitionData(Structure):
    partition: i32 = 0
    state_epoch: i32 = 0  # of the group; FENCED_STATE_EPOCH (124) if it is an older one
    start_offset: i64 = 0  # the first offset that members may read; -1: not determined yet


class InitializeStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=83, versions=(0, 0), flexible_since=0)
class InitializeShareGroupStateRequest(Message):
    """Version 0, flexible."""

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
    """Version 0, flexible."""

    results: list[InitializeStateResult] = []
