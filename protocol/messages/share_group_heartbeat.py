"""ShareGroupHeartbeat (API key 76)."""

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, message, string, uuid


@message(key=76, versions=(1, 1), flexible_since=1)
class ShareGroupHeartbeatRequest(Message):
    """ShareGroupHeartbeatRequest, version 1, flexible."""

    group_id: string = ""
    member_id: string = ""
    member_epoch: i32 = 0
    rack_id: string | None = None
    subscribed_topic_names: list[string] | None = None


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = []


@message(key=76, versions=(1, 1), flexible_since=1)
class ShareGroupHeartbeatResponse(Message):
    """ShareGroupHeartbeatResponse, version 1, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None
