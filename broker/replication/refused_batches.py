"""The metrics of a batch that the log refused: the series of Kafka's BrokerTopicMetrics that it increments.

| refused because of | increments |
|---|---|
| not exactly one whole batch of magic 2 | nothing: Kafka checks this before the append |
| its size, before or after recompression | bytes_rejected, by all bytes that the client sent |
| its checksum | invalid_crc_records |
| its offsets or number of records, a control batch, no sequence | failed, invalid_offset_or_sequence_records |
| records without a key in a compacted topic | failed, no_key_compacted_topic_records by each of them |
| a partition with another leader, a failed disk, more bytes than a segment | |
| anything else: sequences, epochs, timestamps, in-sync replicas | failed |

All but the first also count as a produce request to the topic.

In Kafka a failed produce request is one that failed unexpectedly: errors that clients must expect do not count. Kafka's
series of invalid magic numbers counts batches of several formats in one request, which no served version of Produce may
carry, so that series stays 0 in Kafka and here.

Source: Kafka's ReplicaManager.appendToLocalLog, UnifiedLog and LogValidator; verified with Kafka 4.3.1.
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


def has_log_start_offset(error: KafkaError) -> bool:
    """Return whether the row of a batch that was refused with `error` has the log start offset, as in Kafka."""
    return error.code not in _EXPECTED and getattr(error, "cause", None) is not Cause.NOT_ONE_BATCH


def count_refused(metrics: Metrics, topic: TopicMetrics, error: KafkaError, size_bytes: int) -> None:
    """Count a batch of `size_bytes` that was refused with `error`, and the produce request to its partition."""
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
