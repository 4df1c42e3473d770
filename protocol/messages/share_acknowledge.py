"""ShareAcknowledge (API key 79)."""

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
    since,
    string,
    uuid,
)


class AcknowledgementBatch(Structure):
    first_offset: i64 = 0
    last_offset: i64 = 0
    acknowledge_types: list[i8] = []


class AcknowledgePartition(Structure):
    partition_index: i32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class AcknowledgeTopic(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = []


@message(key=79, versions=(1, 2), flexible_since=1)
class ShareAcknowledgeRequest(Message):
    """ShareAcknowledgeRequest, versions 1–2, flexible."""

    group_id: string | None = None
    member_id: string | None = ""
    share_session_epoch: i32 = 0
    is_renew_ack: Annotated[boolean, since(2)] = False
    topics: list[AcknowledgeTopic] = []


class LeaderIdAndEpoch(Structure):
    leader_id: i32 = 0
    leader_epoch: i32 = 0


class PartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Structure):
    node_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: string | None = None


@message(key=79, versions=(1, 2), flexible_since=1)
class ShareAcknowledgeResponse(Message):
    """ShareAcknowledgeResponse, versions 1–2, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    acquisition_lock_timeout_ms: Annotated[i32, since(2), ignorable] = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
