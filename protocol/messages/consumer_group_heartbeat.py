"""ConsumerGroupHeartbeat (API key 68)."""

from typing import Annotated

from protocol.schema import Message, Structure, ZERO_UUID, i16, i32, message, since, string, uuid


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest(Message):
    """ConsumerGroupHeartbeatRequest, versions 0–1, flexible."""

    group_id: string = ""
    member_id: string = ""
    member_epoch: i32 = 0
    instance_id: string | None = None
    rack_id: string | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: list[string] | None = None
    subscribed_topic_regex: Annotated[string | None, since(1)] = None
    server_assignor: string | None = None
    topic_partitions: list[TopicPartitions] | None = None


class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = []


@message(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse(Message):
    """ConsumerGroupHeartbeatResponse, versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None
