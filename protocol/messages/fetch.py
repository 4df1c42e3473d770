"""Fetch (API key 1)."""

from typing import Annotated

import msgspec

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    i16,
    i32,
    i64,
    i8,
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


class ReplicaState(Structure):
    replica_id: Annotated[i32, since(15)] = -1
    replica_epoch: Annotated[i64, since(15)] = -1


class FetchPartition(Structure):
    partition: i32 = 0
    current_leader_epoch: Annotated[i32, since(9), ignorable] = -1
    fetch_offset: i64 = 0
    last_fetched_epoch: Annotated[i32, since(12)] = -1
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    partition_max_bytes: i32 = 0
    replica_directory_id: Annotated[uuid, since(17), tag(0), ignorable] = ZERO_UUID
    high_watermark: Annotated[i64, since(18), tag(1), ignorable] = 9223372036854775807


class FetchTopic(Structure):
    topic: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Structure):
    topic: Annotated[string, since(7), until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: Annotated[list[i32], since(7)] = []


@message(key=1, versions=(4, 18), flexible_since=12)
class FetchRequest(Message):
    """FetchRequest, versions 4–18, flexible from 12."""

    cluster_id: Annotated[string | None, since(12), tag(0), ignorable] = None
    replica_id: Annotated[i32, until(14)] = -1
    replica_state: Annotated[ReplicaState, since(15), tag(1)] = msgspec.field(default_factory=ReplicaState)
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 0x7FFFFFFF
    isolation_level: i8 = 0
    session_id: Annotated[i32, since(7), ignorable] = 0
    session_epoch: Annotated[i32, since(7), ignorable] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[string, since(11), ignorable] = ""


class EpochEndOffset(Structure):
    epoch: Annotated[i32, since(12)] = -1
    end_offset: Annotated[i64, since(12)] = -1


class LeaderIdAndEpoch(Structure):
    leader_id: Annotated[i32, since(12)] = -1
    leader_epoch: Annotated[i32, since(12)] = -1


class SnapshotId(Structure):
    end_offset: i64 = -1
    epoch: i32 = -1


class AbortedTransaction(Structure):
    producer_id: i64 = 0
    first_offset: i64 = 0


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0
    last_stable_offset: i64 = -1
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    diverging_epoch: Annotated[EpochEndOffset, since(12), tag(0)] = msgspec.field(default_factory=EpochEndOffset)
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tag(1)] = msgspec.field(default_factory=LeaderIdAndEpoch)
    snapshot_id: Annotated[SnapshotId, since(12), tag(2)] = msgspec.field(default_factory=SnapshotId)
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: Annotated[i32, since(11)] = -1
    records: Annotated[record_batches, nullable(4)] = None


class FetchableTopicResponse(Structure):
    topic: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    node_id: Annotated[i32, since(16)] = 0
    host: Annotated[string, since(16)] = ""
    port: Annotated[i32, since(16)] = 0
    rack: Annotated[string | None, since(16)] = None


@message(key=1, versions=(4, 18), flexible_since=12)
class FetchResponse(Message):
    """FetchResponse, versions 4–18, flexible from 12."""

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(7), ignorable] = 0
    session_id: Annotated[i32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tag(0)] = []
