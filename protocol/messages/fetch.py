"""Fetch (API key 1): consumers read record batches, and followers replicate them, from a partition's leader.

It is a long poll: the broker responds once `min_bytes` are available, `max_wait_ms` have passed, or a partition has an
error. The first batch is sent whole even if it exceeds the size limits; otherwise a reader could never get past it
(KIP-74). Consumers may also read from a follower near them (KIP-392).

In a session, a request names only the partitions that changed (KIP-227). Id and epoch determine the kind of request:

| session id | session epoch | the request |
|---|---|---|
| 0 | -1 | full, outside any session |
| any | 0 | full, and opens a new session; the one with this id ends |
| n | 1, 2, … | incremental: names partitions that are new, changed or removed; all others are read, too |
| n | -1 | full, and ends session n |

A response in a session leaves out partitions without changes. An unknown session is FETCH_SESSION_ID_NOT_FOUND (70), a
skipped epoch INVALID_FETCH_SESSION_EPOCH (71). The epoch after 2147483647 is 1.
"""

from typing import Annotated, Final

import msgspec

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    i8,
    i16,
    i32,
    i64,
    ignorable,
    message,
    nullable,
    record_batches,
    since,
    string,
    tag,
    until,
    uuid,
)

LAST_VERSION_WITH_TOPIC_NAMES: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13


class ReplicaState(Structure):
    """The follower: its broker id, and the epoch of its registration, which rejects requests from before a restart."""

    replica_id: Annotated[i32, since(15)] = -1
    replica_epoch: Annotated[i64, since(15)] = -1


class FetchPartition(Structure):
    partition: i32 = 0
    # The reader's; FENCED_LEADER_EPOCH (74) if it is old, UNKNOWN_LEADER_EPOCH (75) if too new; -1: not checked.
    current_leader_epoch: Annotated[i32, since(9), ignorable] = -1
    fetch_offset: i64 = 0  # the first offset to read; its batch is sent from the start
    # Epoch of the record before `fetch_offset`, to compare with the leader's log; -1: not checked.
    last_fetched_epoch: Annotated[i32, since(12)] = -1
    log_start_offset: Annotated[i64, since(5), ignorable] = -1  # of the follower's log; -1 from a consumer
    partition_max_bytes: i32 = 0
    # The follower's log directory; only the metadata quorum uses it (KIP-853).
    replica_directory_id: Annotated[uuid, since(17), tag(0), ignorable] = ZERO_UUID
    # The follower's: if the leader's is higher, the response does not wait. -1 unknown; the default: not sent.
    high_watermark: Annotated[i64, since(18), tag(1), ignorable] = 9223372036854775807


class FetchTopic(Structure):
    topic: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Structure):
    """Partitions to remove from the session."""

    topic: Annotated[string, since(7), until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: Annotated[list[i32], since(7)] = []


@message(key=1, versions=(4, 18), flexible_since=12)
class FetchRequest(Message):
    """Versions 4–18, flexible from 12.

    Kafka 4.0 dropped v0–3 (KIP-896); since v3 the response is filled in the order of the partitions, up to `max_bytes`
    of all together (KIP-74).

    v4 adds isolation levels, and batches of magic 2 in the response (KIP-98), v5 the log start offset of a follower
    (KIP-107), v7 sessions (KIP-227), v9 the leader epoch that fences readers with old metadata (KIP-320), v11 the
    consumer's rack (KIP-392). v12 is flexible. It adds the epoch of the last fetched record, so that the response can
    report where the reader's log diverges, and the fields of the metadata quorum (KIP-595). v13 names topics by id
    (KIP-516). v15 replaces the replica id by `replica_state` with the broker epoch (KIP-903). v17 adds the replica's
    directory (KIP-853), v18 its high watermark (KIP-1166).

    v6, v8, v10, v14 and v16 do not change the layout. With them the reader declares what it supports:
    KAFKA_STORAGE_ERROR (KIP-112), waiting for the throttle time itself (KIP-219), zstd (KIP-110; below v10 such batches
    are UNSUPPORTED_COMPRESSION_TYPE), OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405), leader addresses in the response
    (KIP-951).
    """

    cluster_id: Annotated[string | None, since(12), tag(0), ignorable] = None  # only the metadata quorum checks it
    replica_id: Annotated[i32, until(14)] = -1  # broker id of the follower; -1 from a consumer
    replica_state: Annotated[ReplicaState, since(15), tag(1)] = msgspec.field(default_factory=ReplicaState)
    max_wait_ms: i32 = 0  # the longest wait for `min_bytes`; 0: no wait
    min_bytes: i32 = 0  # of all partitions together; 0: respond at once
    max_bytes: i32 = 0x7FFFFFFF  # of all partitions together
    isolation_level: i8 = 0  # 0 read uncommitted; 1 read committed: only records below the last stable offset
    session_id: Annotated[i32, since(7), ignorable] = 0  # 0 outside a session
    session_epoch: Annotated[i32, since(7), ignorable] = -1  # 0 opens a session, -1 is outside a session or ends it
    topics: list[FetchTopic] = []  # in an incremental request only those that are new or changed
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[string, since(11), ignorable] = ""  # of the consumer, empty for none


class EpochEndOffset(Structure):
    """The point where the reader's log diverges from the leader's."""

    epoch: Annotated[i32, since(12)] = -1
    end_offset: Annotated[i64, since(12)] = -1


class LeaderIdAndEpoch(Structure):
    """The leader of the partition; -1, the default, if the broker does not know it."""

    leader_id: Annotated[i32, since(12)] = -1
    leader_epoch: Annotated[i32, since(12)] = -1


class SnapshotId(Structure):
    end_offset: i64 = -1
    epoch: i32 = -1


class AbortedTransaction(Structure):
    """An aborted transaction: skip the producer's records from `first_offset` to its abort marker."""

    producer_id: i64 = 0
    first_offset: i64 = 0


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0  # exclusive: the first offset that is not committed yet; -1 with an error
    last_stable_offset: i64 = -1  # exclusive: the first offset of a transaction still open, at most the high watermark
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    # The last epoch that both logs may share, and its end offset here: truncate to it and fetch again.
    diverging_epoch: Annotated[EpochEndOffset, since(12), tag(0)] = msgspec.field(default_factory=EpochEndOffset)
    # Sent with NOT_LEADER_OR_FOLLOWER (6) and FENCED_LEADER_EPOCH (74).
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tag(1)] = msgspec.field(default_factory=LeaderIdAndEpoch)
    # Of the metadata quorum: the offset was deleted; fetch this snapshot.
    snapshot_id: Annotated[SnapshotId, since(12), tag(2)] = msgspec.field(default_factory=SnapshotId)
    # Those with records in this response; None for read uncommitted.
    aborted_transactions: list[AbortedTransaction] | None = []
    # The broker to read from instead, and then no records; -1 for none.
    preferred_read_replica: Annotated[i32, since(11)] = -1
    records: Annotated[record_batches, nullable(4)] = None  # whole batches, the last one may be cut off at a size limit


class FetchableTopicResponse(Structure):
    topic: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    """The address of a broker that a `current_leader` names."""

    node_id: Annotated[i32, since(16)] = 0
    host: Annotated[string, since(16)] = ""
    port: Annotated[i32, since(16)] = 0
    rack: Annotated[string | None, since(16)] = None


@message(key=1, versions=(4, 18), flexible_since=12)
class FetchResponse(Message):
    """Versions 4–18, flexible from 12.

    v4 adds the last stable offset and the aborted transactions for isolation levels (KIP-98). v5 adds the log start
    offset (KIP-107), v7 the session id and an error for the session as a whole (KIP-227), v11 the replica to read from
    instead (KIP-392). v12 is flexible and has the tagged fields `diverging_epoch` and `current_leader` (KIP-595) and
    `snapshot_id` (KIP-630). v13 names topics by id and may return UNKNOWN_TOPIC_ID, or INCONSISTENT_TOPIC_ID if the log
    has another id (KIP-516). v16 adds the addresses of leaders (KIP-951). The other versions do not change the layout;
    see the request.
    """

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(7), ignorable] = 0  # of the session; with an error there are no partitions
    session_id: Annotated[i32, since(7)] = 0  # 0 without a session
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tag(0)] = []
