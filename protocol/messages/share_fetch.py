"""ShareFetch (API key 78)."""

from typing import Annotated

import msgspec

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    boolean,
    i16,
    i32,
    i64,
    i8,
    ignorable,
    message,
    record_batches,
    since,
    string,
    until,
    uuid,
)


class AcknowledgementBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0
    acknowledge_types: list[i8] = []


class FetchPartition(Structure):
    partition_index: i32 = 0
    partition_max_bytes: Annotated[i32, until(0)] = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class FetchTopic(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(key=78, versions=(1, 2), flexible_since=1)
class ShareFetchRequest(Message):
    """ShareFetchRequest, versions 1–2, flexible."""

    group_id: string | None = None
    member_id: string | None = ""
    share_session_epoch: i32 = 0
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 0x7FFFFFFF
    max_records: i32 = 0
    batch_size: i32 = 0
    share_acquire_mode: Annotated[i8, since(2), ignorable] = 0
    is_renew_ack: Annotated[boolean, since(2)] = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class LeaderIdAndEpoch(Structure):
    leader_id: i32 = 0
    leader_epoch: i32 = 0


class AcquiredRecords(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_count: i16 = 0


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    acknowledge_error_code: i16 = 0
    acknowledge_error_message: string | None = None
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)
    records: record_batches = None
    acquired_records: list[AcquiredRecords] = []


class ShareFetchableTopicResponse(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    node_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: string | None = None


@message(key=78, versions=(1, 2), flexible_since=1)
class ShareFetchResponse(Message):
    """ShareFetchResponse, versions 1–2, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    acquisition_lock_timeout_ms: i32 = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
