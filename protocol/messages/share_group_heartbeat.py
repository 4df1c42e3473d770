"""ShareGroupHeartbeat (API key 76): members join, stay in and leave share groups (KIP-932).

In a share group several members read one partition, record by record, as from a queue.
"""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, message, string, uuid


@message(key=76, versions=(1, 1), flexible_since=1)
class ShareGroupHeartbeatRequest(Message):
    """Version 1, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it."""

    group_id: string = ""
    member_id: string = ""  # chosen by the member, the same until its process ends
    member_epoch: i32 = 0  # 0 joins, -1 leaves; otherwise the last one received
    rack_id: string | None = None  # None when it did not change, as is the subscription
    subscribed_topic_names: list[string] | None = None


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = []


@message(key=76, versions=(1, 1), flexible_since=1)
class ShareGroupHeartbeatResponse(Message):
    """Version 1, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: i32 = 0  # to be sent with the next heartbeat
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None  # None when it did not change
