"""DescribeQuorum (API key 55): an admin client reads leader, voters and lag of the metadata quorum (KIP-595)."""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    i16,
    i32,
    i64,
    ignorable,
    message,
    since,
    string,
    u16,
    uuid,
)


class RequestPartitionData(Structure):
    partition_index: i32 = 0


class RequestTopicData(Structure):
    topic_name: string = ""  # `__cluster_metadata`, partition 0
    partitions: list[RequestPartitionData] = []


@message(key=55, versions=(0, 2), flexible_since=0)
class DescribeQuorumRequest(Message):
    """Versions 0–2, flexible; v1 and v2 change only the response."""

    topics: list[RequestTopicData] = []


class ReplicaState(Structure):
    replica_id: i32 = 0
    replica_directory_id: Annotated[uuid, since(2)] = ZERO_UUID
    log_end_offset: i64 = 0  # -1 unknown
    # Leader's clock (ms); -1 unknown, and for the leader itself.
    last_fetch_timestamp: Annotated[i64, since(1), ignorable] = -1
    last_caught_up_timestamp: Annotated[i64, since(1), ignorable] = -1  # leader's clock (ms); -1 unknown


class ResponsePartitionData(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: Annotated[string | None, since(2), ignorable] = ""
    leader_id: i32 = 0  # -1 unknown
    leader_epoch: i32 = 0
    high_watermark: i64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class ResponseTopicData(Structure):
    topic_name: string = ""
    partitions: list[ResponsePartitionData] = []


class Listener(Structure):
    name: Annotated[string, since(2)] = ""
    host: Annotated[string, since(2)] = ""
    port: Annotated[u16, since(2)] = 0


class Node(Structure):
    """The addresses of a voter."""

    node_id: Annotated[i32, since(2)] = 0
    listeners: Annotated[list[Listener], since(2)] = []


@message(key=55, versions=(0, 2), flexible_since=0)
class DescribeQuorumResponse(Message):
    """Versions 0–2, flexible.

    v1 adds the times of the last fetch and of the last time without lag (KIP-836). v2 adds error texts, directory ids
    and the nodes' addresses (KIP-853).
    """

    error_code: i16 = 0
    error_message: Annotated[string | None, since(2), ignorable] = ""
    topics: list[ResponseTopicData] = []
    nodes: Annotated[list[Node], since(2)] = []
