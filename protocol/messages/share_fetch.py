"""ShareFetch (API key 78): a member of a share group acquires records, and may acknowledge earlier ones (KIP-932).

The partition's leader locks the records for the member. If the lock expires before they are acknowledged, another
member gets them. Share sessions are like the sessions of Fetch.
"""

from typing import Annotated

import msgspec

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    boolean,
    i8,
    i16,
    i32,
    i64,
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
    last_offset: i64 = 0  # inclusive
    acknowledge_types: list[i8] = []  # for each offset, or one for all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew


class FetchPartition(Structure):
    partition_index: i32 = 0
    partition_max_bytes: Annotated[i32, until(0)] = 0  # of the early access
    acknowledgement_batches: list[AcknowledgementBatch] = []


class FetchTopic(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Structure):
    """Partitions to remove from the session."""

    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(key=78, versions=(1, 2), flexible_since=1)
class ShareFetchRequest(Message):
    """Versions 1–2, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it.

    v2 can make `max_records` a strict limit (KIP-1206) and renew locks (KIP-1222).
    """

    group_id: string | None = None
    member_id: string | None = ""
    share_session_epoch: i32 = 0  # 0 opens a session, -1 ends it; otherwise one more than before
    max_wait_ms: i32 = 0  # the longest wait for `min_bytes`
    min_bytes: i32 = 0
    max_bytes: i32 = 0x7FFFFFFF
    max_records: i32 = 0  # may be exceeded to the end of a batch
    batch_size: i32 = 0  # the largest batch of acquired records, if possible
    share_acquire_mode: Annotated[i8, since(2), ignorable] = 0  # 0 whole batches, 1 no record beyond `max_records`
    # True: the acknowledgements renew locks, and no records are requested.
    is_renew_ack: Annotated[boolean, since(2)] = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class LeaderIdAndEpoch(Structure):
    leader_id: i32 = 0
    leader_epoch: i32 = 0


class AcquiredRecords(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0  # inclusive
    delivery_count: i16 = 0  # 1 at the first delivery


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0  # of the fetch
    error_message: string | None = None
    acknowledge_error_code: i16 = 0  # of the acknowledgements: INVALID_RECORD_STATE (121) if the lock had expired, …
    acknowledge_error_message: string | None = None
    # Sent with NOT_LEADER_OR_FOLLOWER (6); ids of -1 if the broker does not know it.
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)
    records: record_batches = None
    # The ranges of `records` that this member acquired; ignore the others.
    acquired_records: list[AcquiredRecords] = []


class ShareFetchableTopicResponse(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    """The address of a broker that a `current_leader` names."""

    node_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: string | None = None


@message(key=78, versions=(1, 2), flexible_since=1)
class ShareFetchResponse(Message):
    """Versions 1–2, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it.

    The fields of v2 are those of v1.
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    acquisition_lock_timeout_ms: i32 = 0  # how long the records stay locked for this member
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
