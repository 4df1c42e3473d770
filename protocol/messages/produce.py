"""Produce (API key 0)."""

from typing import Annotated

import msgspec

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
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


class PartitionProduceData(Structure):
    index: i32 = 0
    records: Annotated[record_batches, nullable(3)] = None


class TopicProduceData(Structure):
    name: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


@message(key=0, versions=(3, 13), flexible_since=9)
class ProduceRequest(Message):
    """ProduceRequest, versions 3–13, flexible from 9."""

    transactional_id: string | None = None
    acks: i16 = 0
    timeout_ms: i32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Structure):
    batch_index: Annotated[i32, since(8)] = 0
    batch_index_error_message: Annotated[string | None, since(8)] = None


class LeaderIdAndEpoch(Structure):
    leader_id: Annotated[i32, since(10)] = -1
    leader_epoch: Annotated[i32, since(10)] = -1


class PartitionProduceResponse(Structure):
    index: i32 = 0
    error_code: i16 = 0
    base_offset: i64 = 0
    log_append_time_ms: i64 = -1
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), ignorable] = []
    error_message: Annotated[string | None, since(8), ignorable] = None
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tag(0)] = msgspec.field(default_factory=LeaderIdAndEpoch)


class TopicProduceResponse(Structure):
    name: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Structure):
    node_id: Annotated[i32, since(10)] = 0
    host: Annotated[string, since(10)] = ""
    port: Annotated[i32, since(10)] = 0
    rack: Annotated[string | None, since(10)] = None


@message(key=0, versions=(3, 13), flexible_since=9)
class ProduceResponse(Message):
    """ProduceResponse, versions 3–13, flexible from 9."""

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: i32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tag(0)] = []
