"""ShareGroupDescribe (API key 77)."""

import msgspec

from protocol.schema import Message, Structure, ZERO_UUID, boolean, i16, i32, message, string, uuid


@message(key=77, versions=(1, 1), flexible_since=1)
class ShareGroupDescribeRequest(Message):
    """ShareGroupDescribeRequest, version 1, flexible."""

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
    group_state: string = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: string = ""
    members: list[Member] = []
    authorized_operations: i32 = -2147483648


@message(key=77, versions=(1, 1), flexible_since=1)
class ShareGroupDescribeResponse(Message):
    """ShareGroupDescribeResponse, version 1, flexible."""

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
