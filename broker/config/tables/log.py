"""Properties of logs. Most are broker-wide defaults of a topic property, which is the `LogConfig` field in the row."""

from __future__ import annotations

from odradek.broker.config.bounds import RangeOr, at_least, between, one_of
from odradek.broker.config.property import Fallback, LogProperty, Property, Table, TopicDefault
from odradek.broker.config.types import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, nullable
from odradek.broker.storage.log_config import LogConfig

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class RetentionProperties(Table):
    """Retention of records."""

    log_cleanup_policy = TopicDefault(
        "log.cleanup.policy", LIST, LogConfig.cleanup_policy, one_of("compact", "delete"),
        doc="What happens to old records: delete (whole segments are deleted by age or size), compact (the latest "
        "record of each key is kept), both, or nothing if the list is empty.",
    )
    log_retention_ms = TopicDefault(
        "log.retention.ms", LONG, LogConfig.retention_ms, topic_bound=at_least(-1),
        fallback=(Fallback("log.retention.minutes", _MINUTE_MS), Fallback("log.retention.hours", _HOUR_MS)),
        doc="The age at which a segment is deleted; -1: never. Unset: log.retention.minutes, then "
        "log.retention.hours.",
    )
    log_retention_minutes = Property(
        "log.retention.minutes", nullable(INT), None,
        doc="log.retention.ms in minutes, used if that is unset.",
    )
    log_retention_hours = Property(
        "log.retention.hours", INT, 168,
        doc="log.retention.ms in hours, used if neither milliseconds nor minutes are set.",
    )
    log_retention_bytes = TopicDefault(
        "log.retention.bytes", LONG, LogConfig.retention_bytes,
        doc="The size of a partition's log above which its oldest segments are deleted; -1: no limit.",
    )
    log_segment_delete_delay_ms = TopicDefault(
        "log.segment.delete.delay.ms", LONG, LogConfig.file_delete_delay_ms, at_least(0),
        doc="The time for which the files of a deleted segment or partition are kept, renamed, for readers that still "
        "use them.",
    )


class CompactionProperties(Table):
    """Compaction."""

    log_cleaner_delete_retention_ms = TopicDefault(
        "log.cleaner.delete.retention.ms", LONG, LogConfig.delete_retention_ms, at_least(0),
        doc="The time for which compaction keeps tombstones, so that consumers see deletions.",
    )
    log_cleaner_min_cleanable_ratio = TopicDefault(
        "log.cleaner.min.cleanable.ratio", DOUBLE, LogConfig.min_cleanable_dirty_ratio, between(0, 1),
        doc="The least uncompacted share of a log at which it is compacted.",
    )
    log_cleaner_min_compaction_lag_ms = TopicDefault(
        "log.cleaner.min.compaction.lag.ms", LONG, LogConfig.min_compaction_lag_ms, at_least(0),
        doc="The least age of a record before compaction may remove it.",
    )
    log_cleaner_max_compaction_lag_ms = TopicDefault(
        "log.cleaner.max.compaction.lag.ms", LONG, LogConfig.max_compaction_lag_ms, at_least(1),
        doc="The greatest age of a record at which its log is compacted, whatever its uncompacted share.",
    )
    log_cleaner_enable = Property(
        "log.cleaner.enable", BOOLEAN, True,
        doc="Whether compacted topics are compacted; if not, they grow without limit.",
    )
    log_cleaner_threads = Property(
        "log.cleaner.threads", INT, 1, at_least(0),
        doc="The number of logs that are compacted at a time, each by its own process. Read at the start only.",
    )
    log_cleaner_dedupe_buffer_size = Property(
        "log.cleaner.dedupe.buffer.size", LONG, 134_217_728, dynamic=True,
        doc="The memory in which compaction collects keys, 24 bytes for each, shared by all threads.",
    )
    log_cleaner_io_buffer_load_factor = Property(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, dynamic=True,
        doc="The share of that memory that may be filled. Further keys are compacted in the next round.",
    )
    log_cleaner_io_max_bytes_per_second = Property(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, dynamic=True,
        doc="The most bytes that compaction reads and writes a second.",
    )
    log_cleaner_backoff_ms = Property(
        "log.cleaner.backoff.ms", LONG, 15_000, at_least(0), dynamic=True,
        doc="The time between two searches for a log that needs compaction.",
    )


class SegmentProperties(Table):
    """Segments of a log."""

    log_segment_bytes = TopicDefault(
        "log.segment.bytes", INT, LogConfig.segment_bytes, at_least(14),
        doc="The size at which a new segment begins.",
        differs="it refuses less than 1048576 since 4.0 (KIP-1030); here small segments are allowed, for tests.",
    )
    log_roll_ms = TopicDefault(
        "log.roll.ms", LONG, LogConfig.segment_ms, topic_bound=at_least(1),
        fallback=(Fallback("log.roll.hours", _HOUR_MS),),
        doc="The age at which a new segment begins although the old one is not full. Unset: log.roll.hours.",
    )
    log_roll_hours = Property(
        "log.roll.hours", INT, 168, at_least(1),
        doc="log.roll.ms in hours, used if that is unset.",
    )
    log_roll_jitter_ms = TopicDefault(
        "log.roll.jitter.ms", LONG, LogConfig.segment_jitter_ms, topic_bound=at_least(0),
        fallback=(Fallback("log.roll.jitter.hours", _HOUR_MS),),
        doc="The most that is subtracted from log.roll.ms at random, so that not all logs roll at the same time. "
        "Unset: log.roll.jitter.hours.",
    )
    log_roll_jitter_hours = Property(
        "log.roll.jitter.hours", INT, 0, at_least(0),
        doc="log.roll.jitter.ms in hours, used if that is unset.",
    )
    log_index_size_max_bytes = TopicDefault(
        "log.index.size.max.bytes", INT, LogConfig.segment_index_bytes, at_least(4),
        doc="The size of an index file; when it is full, a new segment begins.",
    )
    log_index_interval_bytes = TopicDefault(
        "log.index.interval.bytes", INT, LogConfig.index_interval_bytes, at_least(0),
        doc="The number of bytes of records between two index entries.",
    )
    log_preallocate = TopicDefault(
        "log.preallocate", BOOLEAN, LogConfig.preallocate,
        doc="Whether the file of a new segment gets its full size at once.",
    )
    log_flush_interval_messages = TopicDefault(
        "log.flush.interval.messages", LONG, LogConfig.flush_messages, at_least(1),
        doc="The number of records after which a log is flushed to disk; 1: before every acknowledgement.",
    )
    log_flush_interval_ms = TopicDefault(
        "log.flush.interval.ms", LONG, LogConfig.flush_ms, topic_bound=at_least(0),
        fallback=(Fallback("log.flush.scheduler.interval.ms"),),
        doc="The longest time for which a record stays unflushed. Unset: log.flush.scheduler.interval.ms.",
    )


class RecordProperties(Table):
    """Records: which are accepted, and how they are stored."""

    message_max_bytes = TopicDefault(
        "message.max.bytes", INT, LogConfig.max_message_bytes, at_least(0),
        doc="The largest accepted batch of records: its size compressed, with its header.",
    )
    log_message_timestamp_type = TopicDefault(
        "log.message.timestamp.type", STRING, LogConfig.message_timestamp_type, one_of("CreateTime", "LogAppendTime"),
        doc="The timestamp of records: the producer's time (CreateTime), or the time of the append (LogAppendTime).",
    )
    log_message_timestamp_before_max_ms = TopicDefault(
        "log.message.timestamp.before.max.ms", LONG, LogConfig.message_timestamp_before_max_ms, at_least(0),
        doc="How far a record's CreateTime may be behind the broker's clock.",
    )
    log_message_timestamp_after_max_ms = TopicDefault(
        "log.message.timestamp.after.max.ms", LONG, LogConfig.message_timestamp_after_max_ms, at_least(0),
        doc="How far a record's CreateTime may be ahead of the broker's clock.",
    )
    compression_type = TopicDefault(
        "compression.type", STRING, LogConfig.compression_type,
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        doc="The compression of stored batches; producer: as they arrive.",
    )
    compression_gzip_level = TopicDefault(
        "compression.gzip.level", INT, LogConfig.compression_gzip_level, RangeOr(1, 9, -1),
        doc="The gzip level when the broker compresses; -1: the default of the library.",
    )
    compression_lz4_level = TopicDefault(
        "compression.lz4.level", INT, LogConfig.compression_lz4_level, between(1, 17),
        doc="The lz4 level when the broker compresses.",
    )
    compression_zstd_level = TopicDefault(
        "compression.zstd.level", INT, LogConfig.compression_zstd_level, between(-131_072, 22),
        doc="The zstd level when the broker compresses.",
    )
    record_validation = LogProperty(
        "record.validation", STRING, LogConfig.record_validation, one_of("header", "records"), own=True,
        doc="The check of a produced batch: only its header and its checksum (header), or every record too (records). "
        "Kafka always checks every record. Records of compacted or recompressed topics are always checked.",
    )
