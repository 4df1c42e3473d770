"""OffsetFetch (API key 9): consumers and tools read the committed offsets of a group from its coordinator."""

from typing import Annotated, Final

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    boolean,
    i16,
    i32,
    i64,
    ignorable,
    message,
    nullable,
    since,
    string,
    until,
    uuid,
)

FIRST_VERSION_WITH_SEVERAL_GROUPS: Final = 8


class OffsetFetchRequestTopic(Structure):
    name: Annotated[string, until(7)] = ""
    partition_indexes: Annotated[list[i32], until(7)] = []


class OffsetFetchRequestTopics(Structure):
    name: Annotated[string, since(8), until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partition_indexes: Annotated[list[i32], since(8)] = []


class OffsetFetchRequestGroup(Structure):
    group_id: Annotated[string, since(8)] = ""
    # Of a member of the consumer protocol (KIP-848), checked with the epoch; None from others.
    member_id: Annotated[string | None, since(9), ignorable] = None
    member_epoch: Annotated[i32, since(9), ignorable] = -1  # -1: not checked
    topics: Annotated[list[OffsetFetchRequestTopics] | None, since(8)] = []  # None for all committed offsets


@message(key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchRequest(Message):
    """Versions 1–10, flexible from 6.

    v0 read from ZooKeeper; Kafka 4.0 dropped it (KIP-896). From v2 on None requests all topics (KIP-88). v7 can require
    offsets without pending changes of open transactions (KIP-447). v8 names several groups, in structures of their own
    (KIP-709). v9 adds the member and its epoch (KIP-848). v10 names topics by id. With v4 a client declares that it
    waits for the throttle time itself (KIP-219).
    """

    group_id: Annotated[string, until(7)] = ""
    # None for all committed offsets of the group.
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable(2)] = []
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = []
    # Return UNSTABLE_OFFSET_COMMIT (88) for a partition with an offset pending in a transaction.
    require_stable: Annotated[boolean, since(7)] = False


class OffsetFetchResponsePartition(Structure):
    partition_index: Annotated[i32, until(7)] = 0
    # The next record to read; -1 without a committed offset, which is no error.
    committed_offset: Annotated[i64, until(7)] = 0
    committed_leader_epoch: Annotated[i32, since(5), until(7), ignorable] = -1  # of the last record read; -1 unknown
    metadata: Annotated[string | None, until(7)] = ""
    error_code: Annotated[i16, until(7)] = 0


class OffsetFetchResponseTopic(Structure):
    name: Annotated[string, until(7)] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], until(7)] = []


class OffsetFetchResponsePartitions(Structure):
    partition_index: Annotated[i32, since(8)] = 0
    # The next record to read; -1 without a committed offset, which is no error.
    committed_offset: Annotated[i64, since(8)] = 0
    committed_leader_epoch: Annotated[i32, since(8), ignorable] = -1  # of the last record read; -1 unknown
    metadata: Annotated[string | None, since(8)] = ""
    error_code: Annotated[i16, since(8)] = 0


class OffsetFetchResponseTopics(Structure):
    name: Annotated[string, since(8), until(9), ignorable] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], since(8)] = []


class OffsetFetchResponseGroup(Structure):
    group_id: Annotated[string, since(8)] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], since(8)] = []
    error_code: Annotated[i16, since(8)] = 0


@message(key=9, versions=(1, 10), flexible_since=6)
class OffsetFetchResponse(Message):
    """Versions 1–10, flexible from 6.

    v2 adds an error for the group as a whole (KIP-88), v3 the throttle time (KIP-124), for which the client itself
    waits from v4 on (KIP-219), v5 the epoch of the last record (KIP-320). v8 contains several groups (KIP-709). v9 may
    return STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID, v10 UNKNOWN_TOPIC_ID (KIP-848).
    """

    throttle_time_ms: Annotated[i32, since(3), ignorable] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[i16, since(2), until(7), ignorable] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
