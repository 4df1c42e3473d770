"""DeleteShareGroupOffsets (API key 92)."""

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, message, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Structure):
    topic_name: string = ""


@message(key=92, versions=(0, 0), flexible_since=0)
class DeleteShareGroupOffsetsRequest(Message):
    """DeleteShareGroupOffsetsRequest, version 0, flexible."""

    group_id: string = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponseTopic(Structure):
    topic_name: string = ""
    topic_id: uuid = ZERO_UUID
    error_code: i16 = 0
    error_message: string | None = None


@message(key=92, versions=(0, 0), flexible_since=0)
class DeleteShareGroupOffsetsResponse(Message):
    """DeleteShareGroupOffsetsResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
