"""ConsumerGroupHeartbeat (API key 68): members join, stay in and leave groups of the consumer protocol (KIP-848).

A member sends its subscription and the partitions that it owns, and receives its assignment, in steps and without
stopping other members: the coordinator computes a target assignment, and assigns a partition to its new owner once the
former one has confirmed that it revoked it. In both directions, a field that did not change since the last heartbeat is
null or -1.
"""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, message, since, string, uuid


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest(Message):
    """Versions 0–1, flexible.

    In v0 the coordinator could choose the member id. From v1 on the member chooses it, so that it can safely repeat a
    join (KIP-1082). v1 adds subscription by a regular expression in RE2/J syntax, which the broker evaluates (KIP-848).
    """

    group_id: string = ""
    member_id: string = ""  # the same until the process ends
    member_epoch: i32 = 0  # 0 joins, -1 leaves, -2 a static member leaves for a while; otherwise the last one received
    instance_id: string | None = None  # of a static member
    rack_id: string | None = None
    rebalance_timeout_ms: i32 = -1  # the time that the member may take to revoke partitions
    subscribed_topic_names: list[string] | None = None
    subscribed_topic_regex: Annotated[string | None, since(1)] = None
    server_assignor: string | None = None  # `uniform` or `range`; None: the broker chooses
    topic_partitions: list[TopicPartitions] | None = None  # the partitions that the member owns


class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = []  # all partitions that the member may own now, not a difference


@message(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse(Message):
    """Versions 0–1, flexible.

    v1 may return INVALID_REGULAR_EXPRESSION (128). Errors of both: after FENCED_MEMBER_EPOCH (110) and
    UNKNOWN_MEMBER_ID (25) a member revokes all partitions and joins with epoch 0. UNRELEASED_INSTANCE_ID (111): another
    process still has the instance id. UNSUPPORTED_ASSIGNOR (112).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: i32 = 0  # to be sent with the next heartbeat
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None  # None when it did not change
