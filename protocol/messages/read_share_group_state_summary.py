"""ReadShareGroupStateSummary (API key 87): a group coordinator reads the start offsets of share partitions (KIP-932).

Brokers send it to the share coordinator.
"""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    i16,
    i32,
    i64,
    ignorable,
    message,
    since,
    string,
    uuid,
)


class PartitionData(Structure):
    partition: i32 = 0
    leader_epoch: i32 = 0


class ReadStateSummaryData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=87, versions=(0, 1), flexible_since=0)
class ReadShareGroupStateSummaryRequest(Message):
    """Versions 0–1, flexible; v1 changes only the response."""

    group_id: string = ""
    topics: list[ReadStateSummaryData] = []


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0  # the first offset still to be delivered; -1: not determined yet
    # Completed records from the start offset on, out of order; -1 unknown.
    delivery_complete_count: Annotated[i32, since(1), ignorable] = -1


class ReadStateSummaryResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=87, versions=(0, 1), flexible_since=0)
class ReadShareGroupStateSummaryResponse(Message):
    """Versions 0–1, flexible; v1 adds the count that lag is computed from (KIP-1226)."""

    results: list[ReadStateSummaryResult] = []
