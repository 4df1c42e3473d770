"""AlterShareGroupOffsets (API key 91): an admin client sets the start offsets of an empty share group (KIP-932)."""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, i64, message, string, uuid


class AlterShareGroupOffsetsRequestPartition(Structure):
    partition_index: i32 = 0
    start_offset: i64 = 0


class AlterShareGroupOffsetsRequestTopic(Structure):
    topic_name: string = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []


@message(key=91, versions=(0, 0), flexible_since=0)
class AlterShareGroupOffsetsRequest(Message):
    """Version 0, flexible."""

    group_id: string = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


class AlterShareGroupOffsetsResponsePartition(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None


class AlterShareGroupOffsetsResponseTopic(Structure):
    topic_name: string = ""
    topic_id: uuid = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []


@message(key=91, versions=(0, 0), flexible_since=0)
class AlterShareGroupOffsetsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0  # of the group as a whole: NON_EMPTY_GROUP (68) if it has members, …
    error_message: string | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
