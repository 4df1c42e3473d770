"""Properties of logs. Nearly all are broker-wide defaults of a topic property: the field of `LogConfig` in the row."""

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
    """When records go."""

    log_cleanup_policy = TopicDefault(
        "log.cleanup.policy", LIST, LogConfig.cleanup_policy, one_of("compact", "delete"),
        doc="What happens to old records: delete (whole segments go by age or size), compact (the latest record of a "
        "key stays), both, or nothing if the list is empty.",
    )
    log_retention_ms = TopicDefault(
        "log.retention.ms", LONG, LogConfig.retention_ms, topic_bound=at_least(-1),
        fallback=(Fallback("log.retention.minutes", _MINUTE_MS), Fallback("log.retention.hours", _HOUR_MS)),
        doc="The age at which a segment is deleted; -1: never. Unset: log.retention.minutes, then log.retention.hours.",
    )
    log_retention_minutes = Property(
        "log.retention.minutes", nullable(INT), None, doc="log.retention.ms in minutes; used if that is not set.",
    )
    log_retention_hours = Property(
        "log.retention.hours", INT, 168,
        doc="log.retention.ms in hours; used if neither milliseconds nor minutes are set.",
    )
    log_retention_bytes = TopicDefault(
        "log.retention.bytes", LONG, LogConfig.retention_bytes,
        doc="The size of a partition's log beyond which its oldest segments are deleted; -1: no limit.",
    )
    log_segment_delete_delay_ms = TopicDefault(
        "log.segment.delete.delay.ms", LONG, LogConfig.file_delete_delay_ms, at_least(0),
        doc="How long the files of a deleted segment or partition stay, renamed, for readers that still use them.",
    )


class CompactionProperties(Table):
    """What compaction may touch, and when."""

    log_cleaner_delete_retention_ms = TopicDefault(
        "log.cleaner.delete.retention.ms", LONG, LogConfig.delete_retention_ms, at_least(0),
        doc="How long compaction keeps tombstones, so that consumers see deletions.",
    )
    log_cleaner_min_cleanable_ratio = TopicDefault(
        "log.cleaner.min.cleanable.ratio", DOUBLE, LogConfig.min_cleanable_dirty_ratio, between(0, 1),
        doc="The share of a log that must be uncompacted before compaction is worth it.",
    )
    log_cleaner_min_compaction_lag_ms = TopicDefault(
        "log.cleaner.min.compaction.lag.ms", LONG, LogConfig.min_compaction_lag_ms, at_least(0),
        doc="How long a record is safe from compaction.",
    )
    log_cleaner_max_compaction_lag_ms = TopicDefault(
        "log.cleaner.max.compaction.lag.ms", LONG, LogConfig.max_compaction_lag_ms, at_least(1),
        doc="How long a record may wait for compaction.",
    )
    log_cleaner_enable = Property(
        "log.cleaner.enable", BOOLEAN, True, doc="Whether compacted topics are compacted; without, they grow for ever."
    )
    log_cleaner_threads = Property(
        "log.cleaner.threads", INT, 1, at_least(0),
        doc="How many logs are compacted at a time, each by a process of its own. Read at the start.",
    )
    log_cleaner_dedupe_buffer_size = Property(
        "log.cleaner.dedupe.buffer.size", LONG, 134_217_728, dynamic=True,
        doc="The memory in which compaction collects keys, 24 bytes each, shared by all threads.",
    )
    log_cleaner_io_buffer_load_factor = Property(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, dynamic=True,
        doc="How full that memory may become. More keys are for the next round.",
    )
    log_cleaner_io_max_bytes_per_second = Property(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, dynamic=True,
        doc="How many bytes compaction may read and write a second.",
    )
    log_cleaner_backoff_ms = Property(
        "log.cleaner.backoff.ms", LONG, 15_000, at_least(0), dynamic=True,
        doc="How long compaction rests when no log needs it.",
    )


class SegmentProperties(Table):
    """The files of a log."""

    log_segment_bytes = TopicDefault(
        "log.segment.bytes", INT, LogConfig.segment_bytes, at_least(14),
        doc="The size at which a new segment is begun.",
        differs="since 4.0 (KIP-1030) it refuses less than 1048576; small segments help tests.",
    )
    log_roll_ms = TopicDefault(
        "log.roll.ms", LONG, LogConfig.segment_ms, topic_bound=at_least(1),
        fallback=(Fallback("log.roll.hours", _HOUR_MS),),
        doc="The age at which a new segment is begun although the old one is not full. Unset: log.roll.hours.",
    )
    log_roll_hours = Property(
        "log.roll.hours", INT, 168, at_least(1), doc="log.roll.ms in hours; used if that is not set."
    )
    log_roll_jitter_ms = TopicDefault(
        "log.roll.jitter.ms", LONG, LogConfig.segment_jitter_ms, topic_bound=at_least(0),
        fallback=(Fallback("log.roll.jitter.hours", _HOUR_MS),),
        doc="The most that is taken off log.roll.ms at random, so that not all logs roll at once. "
        "Unset: log.roll.jitter.hours.",
    )
    log_roll_jitter_hours = Property(
        "log.roll.jitter.hours", INT, 0, at_least(0), doc="log.roll.jitter.ms in hours; used if that is not set."
    )
    log_index_size_max_bytes = TopicDefault(
        "log.index.size.max.bytes", INT, LogConfig.segment_index_bytes, at_least(4),
        doc="The size of an index file; a full one begins a new segment.",
    )
    log_index_interval_bytes = TopicDefault(
        "log.index.interval.bytes", INT, LogConfig.index_interval_bytes, at_least(0),
        doc="How many bytes of records there are between two index entries.",
    )
    log_preallocate = TopicDefault(
        "log.preallocate", BOOLEAN, LogConfig.preallocate,
        doc="Whether a new segment's file is given its full size at once.",
    )
    log_flush_interval_messages = TopicDefault(
        "log.flush.interval.messages", LONG, LogConfig.flush_messages, at_least(1),
        doc="After how many records a log is flushed to disk; 1: before every acknowledgement.",
    )
    log_flush_interval_ms = TopicDefault(
        "log.flush.interval.ms", LONG, LogConfig.flush_ms, topic_bound=at_least(0),
        fallback=(Fallback("log.flush.scheduler.interval.ms"),),
        doc="How long a record may stay unflushed. Unset: log.flush.scheduler.interval.ms.",
    )


class RecordProperties(Table):
    """What is accepted into a log, and how it is kept there."""

    message_max_bytes = TopicDefault(
        "message.max.bytes", INT, LogConfig.max_message_bytes, at_least(0),
        doc="The largest batch of records that is accepted, compressed, with its header.",
    )
    log_message_timestamp_type = TopicDefault(
        "log.message.timestamp.type", STRING, LogConfig.message_timestamp_type, one_of("CreateTime", "LogAppendTime"),
        doc="Whether records carry the producer's time or that of their arrival.",
    )
    log_message_timestamp_before_max_ms = TopicDefault(
        "log.message.timestamp.before.max.ms", LONG, LogConfig.message_timestamp_before_max_ms, at_least(0),
        doc="How far behind the broker's clock a record's CreateTime may be.",
    )
    log_message_timestamp_after_max_ms = TopicDefault(
        "log.message.timestamp.after.max.ms", LONG, LogConfig.message_timestamp_after_max_ms, at_least(0),
        doc="How far ahead of the broker's clock a record's CreateTime may be.",
    )
    compression_type = TopicDefault(
        "compression.type", STRING, LogConfig.compression_type,
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        doc="The codec that batches are stored with; producer: as they arrive.",
    )
    compression_gzip_level = TopicDefault(
        "compression.gzip.level", INT, LogConfig.compression_gzip_level, RangeOr(1, 9, -1),
        doc="The gzip level where the broker compresses; -1: the library's default.",
    )
    compression_lz4_level = TopicDefault(
        "compression.lz4.level", INT, LogConfig.compression_lz4_level, between(1, 17),
        doc="The lz4 level where the broker compresses.",
    )
    compression_zstd_level = TopicDefault(
        "compression.zstd.level", INT, LogConfig.compression_zstd_level, between(-131_072, 22),
        doc="The zstd level where the broker compresses.",
    )
    record_validation = LogProperty(
        "record.validation", STRING, LogConfig.record_validation, one_of("header", "records"), own=True,
        doc="How deep a produced batch is checked: its header and the checksum over it all, or every record too. "
        "Kafka always does the latter. Topics that are compacted or re-compressed always have their records read.",
    )
