"""Metadata (API key 3)."""

from typing import Annotated

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    boolean,
    i16,
    i32,
    ignorable,
    message,
    nullable,
    since,
    string,
    until,
    uuid,
)


class MetadataRequestTopic(Structure):
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    name: Annotated[string | None, nullable(10)] = ""


@message(key=3, versions=(0, 13), flexible_since=9)
class MetadataRequest(Message):
    """MetadataRequest, versions 0–13, flexible from 9."""

    topics: Annotated[list[MetadataRequestTopic] | None, nullable(1)] = []
    allow_auto_topic_creation: Annotated[boolean, since(4)] = True
    include_cluster_authorized_operations: Annotated[boolean, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[boolean, since(8)] = False


class MetadataResponseBroker(Structure):
    node_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: Annotated[string | None, since(1), ignorable] = None


class MetadataResponsePartition(Structure):
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: Annotated[i32, since(7), ignorable] = -1
    replica_nodes: list[i32] = []
    isr_nodes: list[i32] = []
    offline_replicas: Annotated[list[i32], since(5), ignorable] = []


class MetadataResponseTopic(Structure):
    error_code: i16 = 0
    name: Annotated[string | None, nullable(12)] = ""
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    is_internal: Annotated[boolean, since(1), ignorable] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[i32, since(8)] = -2147483648


@message(key=3, versions=(0, 13), flexible_since=9)
class MetadataResponse(Message):
    """MetadataResponse, versions 0–13, flexible from 9."""

    throttle_time_ms: Annotated[i32, since(3), ignorable] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[string | None, since(2), ignorable] = None
    controller_id: Annotated[i32, since(1), ignorable] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[i32, since(8), until(10)] = -2147483648
    error_code: Annotated[i16, since(13), ignorable] = 0
