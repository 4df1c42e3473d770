"""ListOffsets (API key 2): anyone asks a partition's leader for an offset by time, or for the log's ends.

Consumers start from it, tools show lag with it. Timestamps are KIP-79; the negative ones stand for places:

| timestamp | the offset asked for | since |
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
    # As the asker knows it: fenced if old, unknown if ahead; -1 unchecked.
    current_leader_epoch: Annotated[i32, since(4), ignorable] = -1
    timestamp: i64 = 0  # ms, or one of the negative places above


class ListOffsetsTopic(Structure):
    name: string = ""
    partitions: list[ListOffsetsPartition] = []


@message(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest(Message):
    """Versions 1–11, flexible from 6.

    v0 could ask for several offsets, as segment bases; v1 asks for one by timestamp (KIP-79), and Kafka 4.0 dropped v0
    (KIP-896). v2 adds the isolation level (KIP-98), v4 the leader epoch that fences askers with old metadata (KIP-320).
    v10 adds a timeout, for offsets that must be looked up in remote storage (KIP-1075). v3 (KIP-219) and v5 (KIP-207)
    say what the asker understands; v7, v8, v9 and v11 each allow one more negative timestamp.
    """

    # Broker id of a follower; -1 a consumer; -2 a debugging tool, which may see beyond the high watermark.
    replica_id: i32 = 0
    isolation_level: Annotated[i8, since(2)] = 0  # 0 read uncommitted, 1 read committed; bears on timestamp -1
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[i32, since(10), ignorable] = 0  # bears on remote storage only


class ListOffsetsPartitionResponse(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    timestamp: i64 = -1  # of the record found; -1 where a place was asked for (except -3), or nothing was found
    offset: i64 = -1  # -1 when no record is that late
    leader_epoch: Annotated[i32, since(4)] = -1  # of the record found; -1 unknown


class ListOffsetsTopicResponse(Structure):
    name: string = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@message(key=2, versions=(1, 11), flexible_since=6)
class ListOffsetsResponse(Message):
    """Versions 1–11, flexible from 6.

    v1 returns one offset with its timestamp (KIP-79). v2 adds the throttle time (KIP-124), which from v3 on the client
    waits out by itself (KIP-219). v4 adds the epoch of the record, for a consumer that resumes there (KIP-320). From v5
    a new leader that does not know its high watermark yet may say OFFSET_NOT_AVAILABLE (78) instead of an offset that
    could go backwards (KIP-207).
    """

    throttle_time_ms: Annotated[i32, since(2), ignorable] = 0
    topics: list[ListOffsetsTopicResponse] = []
