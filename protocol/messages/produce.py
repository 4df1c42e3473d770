"""Produce (API key 0): a producer sends each partition's batch to the leader of that partition.

It is the only request of Kafka that may have no response: with `acks=0`, and then the broker closes the connection to
report an error. The leader sets the base offset and its epoch in the batch, checks the rest and appends it unchanged.
Each partition has its own error. Record batches of magic 2, idempotence and transactions: KIP-98.
"""

from typing import Annotated, Final

import msgspec

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
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


class PartitionProduceData(Structure):
    index: i32 = 0
    # Exactly one batch of magic 2; none, several or another magic is INVALID_RECORD (87).
    records: Annotated[record_batches, nullable(3)] = None


class TopicProduceData(Structure):
    name: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


@message(key=0, versions=(3, 13), flexible_since=9)
class ProduceRequest(Message):
    """Versions 3–13, flexible from 9.

    Kafka 4.0 dropped v0–2 with the message sets of magic 0 and 1 that they carried (KIP-896), but still advertises
    them, because librdkafka concludes from their absence that the broker does not support gzip, snappy and lz4
    (KAFKA-18659).

    v3 adds batches of magic 2 and the transactional id (KIP-98). With several versions the producer only declares what
    it supports: KAFKA_STORAGE_ERROR from v4 (KIP-112), waiting for the throttle time itself from v6 (KIP-219), zstd
    batches from v7 (KIP-110), TRANSACTION_ABORTABLE from v11 (KIP-890). v5, v8 and v10 change only the response. From
    v12 on a transactional batch adds its partition to the transaction; before, AddPartitionsToTxn had to (KIP-890, part
    2). v13 names topics by id instead of name, so that a producer cannot write into a topic that was created again
    under the same name (KIP-516).
    """

    # None unless the batches are transactional; authorization is checked for it.
    transactional_id: string | None = None
    acks: i16 = 0  # 0 no response, 1 after the leader's append, -1 after that of all in-sync replicas
    timeout_ms: i32 = 0  # the longest wait of acks=-1; then REQUEST_TIMED_OUT (7), and the batch stays appended
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Structure):
    batch_index: Annotated[i32, since(8)] = 0  # index of the rejected record in its batch, from 0
    batch_index_error_message: Annotated[string | None, since(8)] = None


class LeaderIdAndEpoch(Structure):
    """The leader of the partition; -1, the default, if the broker does not know it."""

    leader_id: Annotated[i32, since(10)] = -1
    leader_epoch: Annotated[i32, since(10)] = -1


class PartitionProduceResponse(Structure):
    index: i32 = 0
    error_code: i16 = 0
    # Offset of the first record, -1 with an error; of a repeated batch the offset of the first append.
    base_offset: i64 = 0
    log_append_time_ms: i64 = -1  # the timestamp that the broker set, -1 in a topic of create times
    # Shows a producer whose id is unknown whether retention deleted its batches; -1 unknown.
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    # The records because of which the whole batch was rejected.
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), ignorable] = []
    error_message: Annotated[string | None, since(8), ignorable] = None
    # Sent with NOT_LEADER_OR_FOLLOWER (6).
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tag(0)] = msgspec.field(default_factory=LeaderIdAndEpoch)


class TopicProduceResponse(Structure):
    name: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Structure):
    """The address of a broker that a `current_leader` names."""

    node_id: Annotated[i32, since(10)] = 0
    host: Annotated[string, since(10)] = ""
    port: Annotated[i32, since(10)] = 0
    rack: Annotated[string | None, since(10)] = None


@message(key=0, versions=(3, 13), flexible_since=9)
class ProduceResponse(Message):
    """Versions 3–13, flexible from 9.

    v1 and v2 added the throttle time and the log append time (KIP-32). v4 may return KAFKA_STORAGE_ERROR (KIP-112). v5
    adds the log start offset: with it a producer distinguishes a harmless loss of its state from lost records
    (KIP-192). From v6 on a throttled client gets its response at once and itself waits for the throttle time (KIP-219).
    v8 adds the rejected records and the reason (KIP-467). v10 adds the current leader and, once for all partitions, the
    addresses of such leaders, which saves a Metadata round trip (KIP-951). v11 may return TRANSACTION_ABORTABLE
    (KIP-890). v13 has topic ids in place of names and may return UNKNOWN_TOPIC_ID (KIP-516).
    """

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: i32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tag(0)] = []
