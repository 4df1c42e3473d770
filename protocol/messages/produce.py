"""Produce (API key 0): a producer sends each partition's batch to the leader of that partition.

With `acks=0` there is no response, alone among Kafka's requests: a broker that refuses such a one closes the
connection. The leader patches the base offset and its epoch into the batch, checks the rest and appends it as it came;
a partition that fails is answered with its own error and leaves the others alone. Record batches of magic 2,
idempotence and transactions: KIP-98.
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

    Kafka 4.0 dropped v0–2 with the message sets of magic 0 and 1 that they carried (KIP-896), yet advertises them
    still: librdkafka concludes from their absence that the broker does not know gzip, snappy and lz4 (KAFKA-18659).

    v3 brought batches of magic 2 and the transactional id (KIP-98). Several versions left the layout alone and only
    tell what the sender is prepared for: KAFKA_STORAGE_ERROR from v4 (KIP-112), waiting out a throttle by itself from
    v6 (KIP-219), zstd batches from v7 (KIP-110), TRANSACTION_ABORTABLE from v11 (KIP-890). v5, v8 and v10 are new in
    the response. From v12 on a transactional batch enlists its partition in the transaction by itself, where before
    AddPartitionsToTxn had to (KIP-890, part 2). v13 names topics by id and no longer by name, so that a producer cannot
    write into a topic created again under the old name (KIP-516).
    """

    # None unless the batches are transactional; what authorization is checked against.
    transactional_id: string | None = None
    acks: i16 = 0  # 0 no response, 1 after the leader's append, -1 after that of all in-sync replicas
    timeout_ms: i32 = 0  # how long acks=-1 may wait; REQUEST_TIMED_OUT (7) then, though the batch stays appended
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Structure):
    batch_index: Annotated[i32, since(8)] = 0  # place of the refused record in its batch, from 0
    batch_index_error_message: Annotated[string | None, since(8)] = None


class LeaderIdAndEpoch(Structure):
    """The leader that the producer should have asked; -1, the default, where the broker cannot say."""

    leader_id: Annotated[i32, since(10)] = -1
    leader_epoch: Annotated[i32, since(10)] = -1


class PartitionProduceResponse(Structure):
    index: i32 = 0
    error_code: i16 = 0
    # Offset given to the first record, -1 with an error; a repeated batch gets its first one again.
    base_offset: i64 = 0
    log_append_time_ms: i64 = -1  # the broker's time on the records, -1 in a topic of create times
    # Tells a producer whose id is unknown whether retention took its batches; -1 unknown.
    log_start_offset: Annotated[i64, since(5), ignorable] = -1
    # The records for which the batch, all of it, was refused.
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), ignorable] = []
    error_message: Annotated[string | None, since(8), ignorable] = None
    # Comes with NOT_LEADER_OR_FOLLOWER (6).
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tag(0)] = msgspec.field(default_factory=LeaderIdAndEpoch)


class TopicProduceResponse(Structure):
    name: Annotated[string, until(12), ignorable] = ""
    topic_id: Annotated[uuid, since(13), ignorable] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Structure):
    """Where to find a broker that some `current_leader` names."""

    node_id: Annotated[i32, since(10)] = 0
    host: Annotated[string, since(10)] = ""
    port: Annotated[i32, since(10)] = 0
    rack: Annotated[string | None, since(10)] = None


@message(key=0, versions=(3, 13), flexible_since=9)
class ProduceResponse(Message):
    """Versions 3–13, flexible from 9.

    v1 and v2 had brought throttle time and log append time (KIP-32), which v3 kept. v4 may say KAFKA_STORAGE_ERROR
    (KIP-112). v5 adds the log start offset: with it a producer can tell a harmless loss of its state from lost records
    (KIP-192). From v6 a throttled client is answered at once and waits by itself (KIP-219). v8 names the offending
    records and the reason (KIP-467). v10 adds the current leader and, once for all partitions, the addresses of such
    leaders, which saves a Metadata round trip (KIP-951). v11 may say TRANSACTION_ABORTABLE (KIP-890). v13 has topic ids
    in place of names and may say UNKNOWN_TOPIC_ID (KIP-516).
    """

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: i32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tag(0)] = []
