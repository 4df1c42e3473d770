"""ShareAcknowledge (API key 79): a member of a share group acknowledges records without fetching more (KIP-932)."""

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
    since,
    string,
    uuid,
)


class AcknowledgementBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0  # inclusive
    acknowledge_types: list[i8] = []  # for each offset, or one for all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew


class AcknowledgePartition(Structure):
    partition_index: i32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class AcknowledgeTopic(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = []


@message(key=79, versions=(1, 2), flexible_since=1)
class ShareAcknowledgeRequest(Message):
    """Versions 1–2, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it.

    v2 can renew locks (KIP-1222).
    """

    group_id: string | None = None
    member_id: string | None = ""
    share_session_epoch: i32 = 0  # -1 ends the session; otherwise one more than before
    is_renew_ack: Annotated[boolean, since(2)] = False
    topics: list[AcknowledgeTopic] = []


class LeaderIdAndEpoch(Structure):
    leader_id: i32 = 0
    leader_epoch: i32 = 0


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0  # INVALID_RECORD_STATE (121) if the lock had expired, …
    error_message: string | None = None
    # Sent with NOT_LEADER_OR_FOLLOWER (6).
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    """The address of a broker that a `current_leader` names."""

    node_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: string | None = None


@message(key=79, versions=(1, 2), flexible_since=1)
class ShareAcknowledgeResponse(Message):
    """Versions 1–2, flexible; v0 was the early access of Kafka 4.0; Kafka 4.1 removed it.

    v2 adds the duration of renewed locks (KIP-1222).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    acquisition_lock_timeout_ms: Annotated[i32, since(2), ignorable] = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
