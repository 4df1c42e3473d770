"""ConsumerGroupDescribe (API key 69)."""

from typing import Annotated

import msgspec

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    boolean,
    i16,
    i32,
    i8,
    ignorable,
    message,
    since,
    string,
    uuid,
)


@message(key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeRequest(Message):
    """ConsumerGroupDescribeRequest, versions 0–1, flexible."""

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
    instance_id: string | None = None
    rack_id: string | None = None
    member_epoch: i32 = 0
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []
    subscribed_topic_regex: string | None = None
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    member_type: Annotated[i8, since(1), ignorable] = -1


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


@message(key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeResponse(Message):
    """ConsumerGroupDescribeResponse, versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
