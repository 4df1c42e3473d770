"""Metadata (API key 3): a client reads the brokers, the topics and the leaders of partitions from any broker.

Clients send it at the start, after errors that mean stale metadata, and every few minutes. A request by name creates
the topic if the request and `auto.create.topics.enable` allow it.
"""

from typing import Annotated, Final

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    boolean,
    i16,
    i32,
    ignorable,
    may_be_encoded,
    message,
    nullable,
    since,
    string,
    until,
    uuid,
)

FIRST_VERSION_WITH_REQUESTS_BY_ID: Final = 12


class MetadataRequestTopic(Structure):
    """By name or, with `name` None, by id."""

    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID
    name: Annotated[string | None, nullable(10)] = ""


@message(key=3, versions=(0, 13), flexible_since=9)
class MetadataRequest(Message):
    """Versions 0–13, flexible from 9.

    In v0 an empty list requests all topics; from v1 on None does, and an empty list requests none (KIP-4). From v4 on
    the client can forbid the creation of topics. v8 can request the operations that the client is authorized for
    (KIP-430); those on the cluster moved to DescribeCluster in v11 (KIP-700). v10 adds topic ids, but brokers accept
    requests by id only from v12 on (KIP-516). With v13 the client declares that it supports a top-level error.
    """

    topics: Annotated[list[MetadataRequestTopic] | None, nullable(1)] = []  # None for all
    # False: a topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION (3).
    allow_auto_topic_creation: Annotated[boolean, since(4)] = True
    include_cluster_authorized_operations: Annotated[boolean, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[boolean, since(8)] = False


class MetadataResponseBroker(Structure):
    node_id: i32 = 0
    host: string = ""  # as this listener advertises it
    port: i32 = 0
    rack: Annotated[string | None, since(1), ignorable] = None


class MetadataResponsePartition(Structure):
    error_code: i16 = 0  # LEADER_NOT_AVAILABLE (5) before an election
    partition_index: i32 = 0
    leader_id: i32 = 0  # -1 without a leader
    leader_epoch: Annotated[i32, since(7), ignorable] = -1
    replica_nodes: list[i32] = []  # broker ids; the first is the preferred leader
    isr_nodes: list[i32] = []  # the in-sync replicas, the leader among them
    offline_replicas: Annotated[list[i32], since(5), ignorable] = []  # on brokers or log directories that are down


class MetadataResponseTopic(Structure):
    error_code: i16 = 0  # UNKNOWN_TOPIC_OR_PARTITION (3), also while it is being created: retry
    name: Annotated[string | None, nullable(12)] = ""  # None for an unknown id
    topic_id: Annotated[uuid, since(10), ignorable] = ZERO_UUID  # zero for an unknown name
    # True for the brokers' own topics: `__consumer_offsets`, `__transaction_state`, …
    is_internal: Annotated[boolean, since(1), ignorable] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[i32, since(8)] = -2147483648


@message(key=3, versions=(0, 13), flexible_since=9)
class MetadataResponse(Message):
    """Versions 0–13, flexible from 9.

    v1 adds racks (KIP-36), the controller and the internal flag (KIP-4), v2 the cluster id (KIP-78), v3 the throttle
    time (KIP-124), for which the client itself waits from v6 on (KIP-219). v5 lists offline replicas (KIP-112), v7 the
    leader epoch, by which a client recognizes older metadata (KIP-320). v8 adds authorized operations (KIP-430), those
    on the cluster only up to v10 (KIP-700). v10 adds topic ids; from v12 on a name may be None (KIP-516). v13 adds a
    top-level error, such as REBOOTSTRAP_REQUIRED: the client starts again with its bootstrap servers (KIP-1102).
    """

    throttle_time_ms: Annotated[i32, since(3), ignorable] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[string | None, since(2), ignorable] = None
    # The broker to send admin requests to: under KRaft any live broker, which forwards them; -1 none.
    controller_id: Annotated[i32, since(1), ignorable] = -1
    topics: Annotated[list[MetadataResponseTopic], may_be_encoded] = []
    cluster_authorized_operations: Annotated[i32, since(8), until(10)] = -2147483648
    error_code: Annotated[i16, since(13), ignorable] = 0
