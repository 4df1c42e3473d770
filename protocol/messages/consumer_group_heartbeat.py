"""ConsumerGroupHeartbeat (API key 68): the one request by which members of the newer consumer groups live (KIP-848).

A member joins, leaves, tells its subscription and what it owns, and is given its assignment, step by step and without
stopping the others: the coordinator computes a target assignment and hands out a partition once its former owner has
confirmed that it let go. What did not change since the last heartbeat is null or -1, in both directions.
"""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, message, since, string, uuid


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest(Message):
    """Versions 0–1, flexible.

    In v0 the coordinator could choose the member id. v1 has the member make it up itself, so that a join can be
    repeated safely (KIP-1082), and adds subscription by a regular expression that the broker evaluates, in RE2/J syntax
    (KIP-848).
    """

    group_id: string = ""
    member_id: string = ""  # kept as long as the process lives
    member_epoch: i32 = 0  # 0 joins, -1 leaves, -2 a static member leaves for a while; else as last told
    instance_id: string | None = None  # of a static member
    rack_id: string | None = None
    rebalance_timeout_ms: i32 = -1  # how long the member may take to give partitions up
    subscribed_topic_names: list[string] | None = None
    subscribed_topic_regex: Annotated[string | None, since(1)] = None
    server_assignor: string | None = None  # None leaves the choice to the broker; `uniform` or `range`
    topic_partitions: list[TopicPartitions] | None = None  # what the member owns at present


class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = []  # all that the member may own now, not a difference


@message(key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse(Message):
    """Versions 0–1, flexible.

    v1 may say INVALID_REGULAR_EXPRESSION (128). Of note in both: FENCED_MEMBER_EPOCH (110) and UNKNOWN_MEMBER_ID (25),
    after which a member gives everything up and joins with epoch 0; UNRELEASED_INSTANCE_ID (111) while another process
    holds the instance id; UNSUPPORTED_ASSIGNOR (112).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string | None = None
    member_epoch: i32 = 0  # to be sent with the next heartbeat
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None  # None when it did not change
