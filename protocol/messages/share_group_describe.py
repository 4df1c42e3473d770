"""ShareGroupDescribe (API key 77): an admin client reads the state and members of share groups (KIP-932)."""

import msgspec

from odradek.protocol.schema import ZERO_UUID, Message, Structure, boolean, i16, i32, message, string, uuid


@message(key=77, versions=(1, 1), flexible_since=1)
class ShareGroupDescribeRequest(Message):
    """Version 1, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it."""

    group_ids: list[string] = []
    include_authorized_operations: boolean = False


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""
    partitions: list[i32] = []


class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = []


class Member(Structure):
    member_id: string = ""
    rack_id: string | None = None
    member_epoch: i32 = 0
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []
    assignment: Assignment = msgspec.field(default_factory=Assignment)


class DescribedGroup(Structure):
    error_code: i16 = 0
    error_message: string | None = None
    group_id: string = ""
    group_state: string = ""  # Empty, Stable, Dead
    group_epoch: i32 = 0  # increases with each change of members or subscriptions
    assignment_epoch: i32 = 0  # the group epoch that the assignment was computed for
    assignor_name: string = ""
    members: list[Member] = []
    authorized_operations: i32 = -2147483648


@message(key=77, versions=(1, 1), flexible_since=1)
class ShareGroupDescribeResponse(Message):
    """Version 1, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it."""

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
