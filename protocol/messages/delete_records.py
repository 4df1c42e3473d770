"""DeleteRecords (API key 21): an admin client deletes the records of partitions below an offset (KIP-107).

The leaders of the partitions receive it, and respond when all live replicas have moved their log start offsets.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, string


class DeleteRecordsPartition(Structure):
    partition_index: i32 = 0
    offset: i64 = 0  # the new log start offset; -1: the high watermark


class DeleteRecordsTopic(Structure):
    name: string = ""
    partitions: list[DeleteRecordsPartition] = []


@message(key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsRequest(Message):
    """Versions 0–2, flexible from 2.

    With v1 a client declares that it waits for the throttle time itself (KIP-219).
    """

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: i32 = 0


class DeleteRecordsPartitionResult(Structure):
    partition_index: i32 = 0
    low_watermark: i64 = 0  # the smallest log start offset of the live replicas; -1 with an error
    error_code: i16 = 0  # OFFSET_OUT_OF_RANGE (1) beyond the high watermark; POLICY_VIOLATION (44) if only compacted


class DeleteRecordsTopicResult(Structure):
    name: string = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@message(key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsResponse(Message):
    """Versions 0–2, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219).
    """

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
