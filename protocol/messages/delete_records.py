"""DeleteRecords (API key 21): an admin client moves the start of partitions forward; older records go (KIP-107).

It goes to each partition's leader, who answers when all live replicas have moved theirs.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, string


class DeleteRecordsPartition(Structure):
    partition_index: i32 = 0
    offset: i64 = 0  # the new log start offset: the first that stays; -1 for the high watermark


class DeleteRecordsTopic(Structure):
    name: string = ""
    partitions: list[DeleteRecordsPartition] = []


@message(key=21, versions=(0, 2), flexible_since=2)
class DeleteRecordsRequest(Message):
    """Versions 0–2, flexible from 2.

    v1 says that the client waits out a throttle by itself (KIP-219).
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

    From v1 on the client waits out a throttle by itself (KIP-219).
    """

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
