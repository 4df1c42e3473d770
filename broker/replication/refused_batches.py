"""What a batch counts as that a partition's log refused: which series of Kafka's BrokerTopicMetrics move.

| refused because of | moves |
|---|---|
| not exactly one whole batch of magic 2; zstd before Produce knew it | nothing: Kafka looks before it asks a log |
| its size, also after compressing it anew | bytes_rejected, by all that the client sent |
| its checksum | invalid_crc_records |
| its offsets or number of records, a control batch, no sequence | failed, invalid_offset_or_sequence_records |
| records without a key in a compacted topic | failed, no_key_compacted_topic_records by each of them |
| a partition led by others, a failed disk, more bytes than a segment | |
| anything else: sequences, epochs, timestamps, in-sync replicas | failed |

Each but the first also is a produce request to the topic.

A produce request that failed is, in Kafka, one that failed unexpectedly: errors that clients are meant to run into do
not count. Invalid magic numbers are counted in Kafka for batches of several formats in one request, which no version of
Produce that is served may carry: that series stays 0, there and here.

Source: Kafka's ReplicaManager.appendToLocalLog, UnifiedLog and LogValidator; tried out against Kafka 4.3.1.
"""

from __future__ import annotations

from odradek.broker.metrics.counts.metrics import Metrics, TopicMetrics
from odradek.broker.storage.append.refusals import Cause, InvalidRecordsError, RefusedBatchError
from odradek.protocol.errors import ErrorCode, KafkaError

_EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def count_refused(metrics: Metrics, topic: TopicMetrics, error: KafkaError, size_bytes: int) -> None:
    """Count a batch of `size_bytes` that was refused with `error`, and the Produce request to its partition."""
    cause = error.cause if isinstance(error, RefusedBatchError) else None
    if cause is Cause.NOT_ONE_BATCH:
        return
    topic.produce_requests += 1
    if error.code not in _EXPECTED:
        topic.failed_produce_requests += 1
    if error.code is ErrorCode.MESSAGE_TOO_LARGE:
        topic.bytes_rejected += size_bytes
    if cause is Cause.CHECKSUM:
        metrics.invalid_crc_records += 1
    elif cause is Cause.OFFSETS:
        metrics.invalid_offset_or_sequence_records += 1
    elif isinstance(error, InvalidRecordsError):
        metrics.no_key_compacted_topic_records += error.keyless_records
