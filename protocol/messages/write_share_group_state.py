"""WriteShareGroupState (API key 85): a partition's leader stores the progress of share groups (KIP-932).

Brokers send it to the share coordinator.
"""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    i8,
    i16,
    i32,
    i64,
    ignorable,
    message,
    since,
    string,
    uuid,
)


class StateBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0  # inclusive
    delivery_state: i8 = 0  # 0 available, 2 acknowledged, 4 archived
    delivery_count: i16 = 0


class PartitionData(Structure):
    partition: i32 = 0
    state_epoch: i32 = 0  # of the group; FENCED_STATE_EPOCH (124) if it is an older one
    leader_epoch: i32 = 0  # the writer's; FENCED_LEADER_EPOCH (74) if there is a newer leader
    start_offset: i64 = 0  # the first offset still to be delivered; -1: unchanged
    # Completed records from the start offset on, out of order; -1 unknown.
    delivery_complete_count: Annotated[i32, since(1), ignorable] = -1
    state_batches: list[StateBatch] = []


class WriteStateData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=85, versions=(0, 1), flexible_since=0)
class WriteShareGroupStateRequest(Message):
    """Versions 0–1, flexible; v1 adds the count that lag is computed from (KIP-1226)."""

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
    """Versions 0–1, flexible."""

    results: list[WriteStateResult] = []
