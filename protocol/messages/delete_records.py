"""DeleteRecords (API key 21)."""

from protocol.schema import Message, Structure, i16, i32, i64, message, string


class DeleteRecordsPartition(Structure):
    partition_index: i32 = 0
    offset: i64 = 0


class DeleteRecordsTopic(Structure):
    name: string = ""
    partitions: list[DeleteRecordsPartition] = []


@message(key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsRequest(Message):
    """DeleteRecordsRequest, versions 0–2, flexible from 2."""

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: i32 = 0


class DeleteRecordsPartitionResult(Structure):
    partition_index: i32 = 0
    low_watermark: i64 = 0
    error_code: i16 = 0


class DeleteRecordsTopicResult(Structure):
    name: string = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@message(key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsResponse(Message):
    """DeleteRecordsResponse, versions 0–2, flexible from 2."""

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
