"""OffsetDelete (API key 47): an admin client deletes committed offsets of a group (KIP-496).

The group's coordinator receives it. GROUP_SUBSCRIBED_TO_TOPIC (86): a member still subscribes to the topic.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, message, string


class OffsetDeleteRequestPartition(Structure):
    partition_index: i32 = 0


class OffsetDeleteRequestTopic(Structure):
    name: string = ""
    partitions: list[OffsetDeleteRequestPartition] = []


@message(key=47, versions=(0, 0))
class OffsetDeleteRequest(Message):
    """Version 0."""

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
    """Version 0."""

    error_code: i16 = 0  # of the group as a whole: GROUP_ID_NOT_FOUND (69), NON_EMPTY_GROUP (68), …
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
