"""OffsetDelete (API key 47)."""

from protocol.schema import Message, Structure, i16, i32, message, string


class OffsetDeleteRequestPartition(Structure):
    partition_index: i32 = 0


class OffsetDeleteRequestTopic(Structure):
    name: string = ""
    partitions: list[OffsetDeleteRequestPartition] = []


@message(key=47, versions=(0, 0))
class OffsetDeleteRequest(Message):
    """OffsetDeleteRequest, version 0."""

    group_id: string = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0


class OffsetDeleteResponseTopic(Structure):
    name: string = ""
    partitions: list[OffsetDeleteResponsePartition] = []


@message(key=47, versions=(0, 0))
class OffsetDeleteResponse(Message):
    """OffsetDeleteResponse, version 0."""

    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
