"""DeleteShareGroupOffsets (API key 92): an admin client deletes offsets of an empty share group (KIP-932)."""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, message, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Structure):
    topic_name: string = ""


@message(key=92, versions=(0, 0), flexible_since=0)
class DeleteShareGroupOffsetsRequest(Message):
    """Version 0, flexible."""

    group_id: string = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponseTopic(Structure):
    topic_name: string = ""
    topic_id: uuid = ZERO_UUID
    error_code: i16 = 0
    error_message: string | None = None


@message(key=92, versions=(0, 0), flexible_since=0)
class DeleteShareGroupOffsetsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0  # of the group as a whole: NON_EMPTY_GROUP (68) if it has members, …
    error_message: string | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
