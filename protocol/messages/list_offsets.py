"""ListOffsets (API key 2): clients find an offset by timestamp, or the ends of a log, on the partition's leader.

Consumers find the position to start at, tools compute lag. Timestamps are KIP-79; negative ones are special:

| timestamp | the offset returned | since |
|---|---|---|
| 0 and more | the first record of this time or later (ms) | v1 |
| -1 `LATEST` | the end: the high watermark, or the last stable offset for read committed | v1 |
| -2 `EARLIEST` | the log start offset | v1 |
| -3 `MAX_TIMESTAMP` | the record with the largest timestamp | v7, KIP-734 |
| -4 `EARLIEST_LOCAL` | the start of what is stored locally; the log start offset without tiers | v8, KIP-405 |
| -5 `LATEST_TIERED` | the last offset in remote storage | v9, KIP-1005 |
| -6 `EARLIEST_PENDING_UPLOAD` | the first offset not yet uploaded | v11, KIP-1023 |
"""

from typing import Annotated, Final

from odradek.protocol.schema import Message, Structure, i8, i16, i32, i64, ignorable, message, since, string

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6


class ListOffsetsPartition(Structure):
    partition_index: i32 = 0
    # The client's; fenced if it is old, unknown if it is too new; -1: not checked.
    current_leader_epoch: Annotated[i32, since(4), ignorable] = -1
    timestamp: i64 = 0  # ms, or one of the negative values above


class ListOffsetsTopic(Structure):
    name: string = ""
    partitions: list[ListOffsetsPartition] = []


@message(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest(Message):
    """Versions 1–11, flexible from 6.

    v0 returned base offsets of segments; v1 returns one offset by timestamp (KIP-79), and Kafka 4.0 dropped v0
    (KIP-896). v2 adds the isolation level (KIP-98), v4 the leader epoch that fences clients with old metadata
    (KIP-320). v10 adds a timeout, for offsets in remote storage (KIP-1075). With v3 (KIP-219) and v5 (KIP-207) the
    client declares what it supports. v7, v8, v9 and v11 each add a negative timestamp.
    """

    # Broker id of a follower; -1 a consumer; -2 a debugging tool, which may see beyond the high watermark.
    replica_id: i32 = 0
    isolation_level: Annotated[i8, since(2)] = 0  # 0 read uncommitted, 1 read committed; affects timestamp -1
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[i32, since(10), ignorable] = 0  # for remote storage only


class ListOffsetsPartitionResponse(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    timestamp: i64 = -1  # of the record found; -1 for negative timestamps other than -3, and without a record
    offset: i64 = -1  # -1 without a record
    leader_epoch: Annotated[i32, since(4)] = -1  # of the record found; -1 unknown


class ListOffsetsTopicResponse(Structure):
    name: string = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@message(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsResponse(Message):
    """Versions 1–11, flexible from 6.

    v1 returns one offset with its timestamp (KIP-79). v2 adds the throttle time (KIP-124), for which the client itself
    waits from v3 on (KIP-219). v4 adds the epoch of the record, for a consumer that resumes there (KIP-320). From v5 on
    a new leader without a high watermark may return OFFSET_NOT_AVAILABLE (78), because its end could otherwise go
    backwards (KIP-207).
    """

    throttle_time_ms: Annotated[i32, since(2), ignorable] = 0
    topics: list[ListOffsetsTopicResponse] = []
