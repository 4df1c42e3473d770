"""OffsetCommit (API key 8): a consumer commits the offsets of its group to the group's coordinator.

The offset is that of the next record to read. The coordinator checks that the client is a member of the present
generation. A client that is no member (assigned partitions, tools) commits with generation -1 and no member id, to an
empty group.
"""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    i16,
    i32,
    i64,
    ignorable,
    message,
    since,
    string,
    until,
    uuid,
)


class OffsetCommitRequestPartition(Structure):
    partition_index: i32 = 0
    committed_offset: i64 = 0  # the next record to read
    committed_leader_epoch: Annotated[i32, since(6), ignorable] = -1  # of the last record read; -1 unknown
    committed_metadata: string | None = ""  # any text, at most `offset.metadata.max.bytes`


class OffsetCommitRequestTopic(Structure):
    name: Annotated[string, until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


@message(key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest(Message):
    """Versions 2–10, flexible from 8.

    Kafka 4.0 dropped v0, which wrote to ZooKeeper, and v1, which had a timestamp for each commit (KIP-896). v5 removes
    the retention time: `offsets.retention.minutes` of the broker replaces it (KIP-211). v6 adds the epoch of the last
    record, so that a consumer that resumes there detects a truncated log (KIP-320). v7 adds the instance id of static
    members (KIP-345). From v9 on members of the consumer protocol may commit, with their member epoch (KIP-848). v10
    names topics by id. With v4 a client declares that it waits for the throttle time itself (KIP-219).
    """

    group_id: string = ""
    # Generation in a classic group, member epoch in the consumer protocol; -1 without a member.
    generation_id_or_member_epoch: i32 = -1
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(7)] = None
    retention_time_ms: Annotated[i64, until(4), ignorable] = -1  # -1 for the broker's
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0


class OffsetCommitResponseTopic(Structure):
    name: Annotated[string, until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


@message(key=8, versions=(2, 10), flexible_since=8)
class OffsetCommitResponse(Message):
    """Versions 2–10, flexible from 8.

    v3 adds the throttle time (KIP-124), for which the client itself waits from v4 on (KIP-219). v9 may return
    GROUP_ID_NOT_FOUND (69), and STALE_MEMBER_EPOCH (113), after which a member commits again with its present epoch
    (KIP-848). v10 names topics by id and may return UNKNOWN_TOPIC_ID (KIP-848).
    """

    throttle_time_ms: Annotated[i32, since(3), ignorable] = 0
    topics: list[OffsetCommitResponseTopic] = []
