"""Fetch (API key 1): consumers read record batches, and followers replicate them, from a partition's leader.

It is a long poll: the broker answers once `min_bytes` are there, `max_wait_ms` have passed, or a partition has an
error. Sizes are limits, except for the first batch: it is sent whole however large, or a reader could never get past it
(KIP-74). Consumers may also read from a follower near them (KIP-392).

Sessions keep wide readers from naming every partition every time (KIP-227). Id and epoch say what a request is:

| session id | session epoch | the request |
|---|---|---|
| 0 | -1 | full, outside any session |
| any | 0 | full, and opens a new session; the one with this id ends |
| n | 1, 2, … | incremental: names what is new or changed, and what to forget; unnamed partitions are read on |
| n | -1 | full, and ends session n |

A response in a session leaves out partitions with nothing new. An unknown session is FETCH_SESSION_ID_NOT_FOUND (70), a
skipped epoch INVALID_FETCH_SESSION_EPOCH (71); after 2147483647 the epoch goes on at 1.
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
    """Who replicates: a broker and its registration's epoch, so that one restarted since cannot pass for itself."""

    replica_id: Annotated[i32, since(15)] = -1
    replica_epoch: Annotated[i64, since(15)] = -1


class FetchPartition(Structure):
    partition: i32 = 0
    # As the reader knows it: FENCED_LEADER_EPOCH (74) if old, UNKNOWN_LEADER_EPOCH (75) if ahead; -1 unchecked.
    current_leader_epoch: Annotated[i32, since(9), ignorable] = -1
    fetch_offset: i64 = 0  # the first offset wanted; the batch that holds it is sent from its start
    # Epoch of the record before `fetch_offset`, to be compared with the leader's log; -1 unchecked.
    last_fetched_epoch: Annotated[i32, since(12)] = -1
    log_start_offset: Annotated[i64, since(5), ignorable] = -1  # of the follower's log; -1 from a consumer
    partition_max_bytes: i32 = 0
    # The follower's log directory; only the metadata quorum uses it (KIP-853).
    replica_directory_id: Annotated[uuid, since(17), tag(0), ignorable] = ZERO_UUID
    # As the follower knows it, so that a newer one alone need not wait; -1 unknown, the default not told.
    high_watermark: Annotated[i64, since(18), tag(1), ignorable] = 9223372036854775807


class FetchTopic(Structure):
    topic: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Structure):
    """Partitions to take out of the session."""

    topic: Annotated[string, since(7), until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: Annotated[list[i32], since(7)] = []


@message(key=1, versions=(4, 18), flexible_since=12)
class FetchRequest(Message):
    """Versions 4–18, flexible from 12.

    Kafka 4.0 dropped v0–3 (KIP-896); v3 of them had made the order of partitions count: they are filled in the order
    named, within `max_bytes` over all (KIP-74).

    v4 brought isolation levels, and batches of magic 2 in the response (KIP-98). v5 lets a follower tell its log start
    offset (KIP-107), v7 adds sessions (KIP-227), v9 the leader epoch that fences readers with old metadata (KIP-320),
    v11 the consumer's rack (KIP-392). v12 is flexible and adds the epoch of the last fetched record, by which a reader
    learns from the response itself that its log diverged, together with the fields of the metadata quorum (KIP-595).
    v13 names topics by id (KIP-516). v15 replaces the replica id by `replica_state` with the broker epoch (KIP-903).
    v17 adds the replica's directory (KIP-853), v18 its high watermark (KIP-1166).

    The layout stays in v6, v8, v10, v14 and v16, by which the reader declares what it understands: KAFKA_STORAGE_ERROR
    (KIP-112), waiting out a throttle by itself (KIP-219), zstd (KIP-110; below v10 such batches are answered with
    UNSUPPORTED_COMPRESSION_TYPE), OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405), leader addresses in the response (KIP-951).
    """

    cluster_id: Annotated[string | None, since(12), tag(0), ignorable] = None  # checked by the metadata quorum alone
    replica_id: Annotated[i32, until(14)] = -1  # broker id of the follower; -1 from a consumer
    replica_state: Annotated[ReplicaState, since(15), tag(1)] = msgspec.field(default_factory=ReplicaState)
    max_wait_ms: i32 = 0  # how long the response may wait for `min_bytes`; 0 not at all
    min_bytes: i32 = 0  # of all partitions together; 0 answers at once
    max_bytes: i32 = 0x7FFFFFFF  # of all partitions together
    isolation_level: i8 = 0  # 0 read uncommitted; 1 read committed: nothing from the last stable offset on
    session_id: Annotated[i32, since(7), ignorable] = 0  # 0 outside a session
    session_epoch: Annotated[i32, since(7), ignorable] = -1  # 0 opens a session, -1 is outside or ends one
    topics: list[FetchTopic] = []  # in an incremental request only those that are new or changed
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[string, since(11), ignorable] = ""  # of the consumer, empty for none


class EpochEndOffset(Structure):
    """Where the reader's log left the leader's."""

    epoch: Annotated[i32, since(12)] = -1
    end_offset: Annotated[i64, since(12)] = -1


class LeaderIdAndEpoch(Structure):
    """The leader that should have been asked; -1, the default, where the broker cannot say."""

    leader_id: Annotated[i32, since(12)] = -1
    leader_epoch: Annotated[i32, since(12)] = -1


class SnapshotId(Structure):
    end_offset: i64 = -1
    epoch: i32 = -1


class AbortedTransaction(Structure):
    """A producer's records from `first_offset` up to its abort marker are to be skipped."""

    producer_id: i64 = 0
    first_offset: i64 = 0


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0  # exclusive: the first offset that is not committed yet; -1 with an error
    last_stable_offset: i64 = -1  # exclusive: the first offset of a transaction still open, at most the high watermark
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    # The last epoch both logs may share and where it ends here: truncate to it, fetch again.
    diverging_epoch: Annotated[EpochEndOffset, since(12), tag(0)] = msgspec.field(default_factory=EpochEndOffset)
    # Comes with NOT_LEADER_OR_FOLLOWER (6) and FENCED_LEADER_EPOCH (74).
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tag(1)] = msgspec.field(default_factory=LeaderIdAndEpoch)
    # Of the metadata quorum: the offset is gone, fetch this snapshot.
    snapshot_id: Annotated[SnapshotId, since(12), tag(2)] = msgspec.field(default_factory=SnapshotId)
    # Those that touch these records; None for read uncommitted.
    aborted_transactions: list[AbortedTransaction] | None = []
    # The broker to read from instead, without records then; -1 for none.
    preferred_read_replica: Annotated[i32, since(11)] = -1
    records: Annotated[record_batches, nullable(4)] = None  # whole batches, the last possibly cut off at a size limit


class FetchableTopicResponse(Structure):
    topic: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    """Where to find a broker that some `current_leader` names."""

    node_id: Annotated[i32, since(16)] = 0
    host: Annotated[string, since(16)] = ""
    port: Annotated[i32, since(16)] = 0
    rack: Annotated[string | None, since(16)] = None


@message(key=1, versions=(4, 18), flexible_since=12)
class FetchResponse(Message):
    """Versions 4–18, flexible from 12.

    v4 brought the last stable offset and the aborted transactions for isolation levels (KIP-98). v5 adds the log start
    offset (KIP-107), v7 the session id and an error for the session as a whole (KIP-227), v11 the replica to read from
    instead (KIP-392). v12 is flexible and has the tagged fields `diverging_epoch` and `current_leader` (KIP-595) and
    `snapshot_id` (KIP-630). v13 names topics by id and may say UNKNOWN_TOPIC_ID, or INCONSISTENT_TOPIC_ID when the log
    has another (KIP-516). v16 adds the addresses of leaders (KIP-951). In the other versions the layout stays; see the
    request.
    """

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(7), ignorable] = 0  # of the session; then there are no partitions
    session_id: Annotated[i32, since(7)] = 0  # 0 when the broker keeps no session
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tag(0)] = []
