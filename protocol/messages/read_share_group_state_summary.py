"""ReadShareGroupStateSummary (API key 87)."""

from typing import Annotated

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, i64, ignorable, message, since, string, uuid


class PartitionData(Structure):
    partition: i32 = 0
    leader_epoch: i32 = 0


class ReadStateSummaryData(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(key=87, versions=(0, 1), flexible_since=0)
class ReadShareGroupStateSummaryRequest(Message):
    """ReadShareGroupStateSummaryRequest, versions 0–1, flexible."""

    group_id: string = ""
    topics: list[ReadStateSummaryData] = []


class PartitionResult(Structure):
    partition: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: Annotated[i32, since(1), ignorable] = -1


class ReadStateSummaryResult(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


@message(key=87, versions=(0, 1), flexible_since=0)
class ReadShareGroupStateSummaryResponse(Message):
    """ReadShareGroupStateSummaryResponse, versions 0–1, flexible."""

    results: list[ReadStateSummaryResult] = []
