"""ConsumerGroupDescribe (API key 69): an admin client reads the state of groups of the consumer protocol (KIP-848).

The coordinator receives it. For a classic group it returns GROUP_ID_NOT_FOUND (69); DescribeGroups describes those.
"""

from typing import Annotated

import msgspec

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    boolean,
    i8,
    i16,
    i32,
    ignorable,
    message,
    since,
    string,
    uuid,
)


@message(key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeRequest(Message):
    """Versions 0–1, flexible.

    v1 changes only the response.
    """

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
    subscribed_topic_regex: string | None = None  # None without one
    assignment: Assignment = msgspec.field(default_factory=Assignment)  # the partitions that it owns
    # The partitions that it will own; equal to `assignment` in a stable group.
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    member_type: Annotated[i8, since(1), ignorable] = -1  # 0 classic protocol, 1 consumer protocol; -1 unknown


class DescribedGroup(Structure):
    error_code: i16 = 0
    error_message: string | None = None
    group_id: string = ""
    group_state: string = ""  # Empty, Assigning, Reconciling, Stable, Dead
    group_epoch: i32 = 0  # increases with each change of members or subscriptions
    assignment_epoch: i32 = 0  # the group epoch that the target assignment was computed for
    assignor_name: string = ""
    members: list[Member] = []
    authorized_operations: i32 = -2147483648


@message(key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeResponse(Message):
    """Versions 0–1, flexible.

    v1 adds which members still use the classic protocol, during a rolling upgrade (KIP-1099).
    """

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
