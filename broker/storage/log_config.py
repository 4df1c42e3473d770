"""The configuration of a topic's logs: Kafka's topic properties, with underscores for dots, and Kafka's defaults.

A field is the one definition of a property's topic-level name, type and default. The tables of the broker's properties
refer to it (`LogConfig.segment_bytes` in `broker/config/tables/log.py`).
"""

from __future__ import annotations

import msgspec

NO_LIMIT = 0x7FFF_FFFF_FFFF_FFFF  # Java's Long.MAX_VALUE: Kafka's value for "never" and "no limit"

UNCOMPRESSED = "uncompressed"
PRODUCER = "producer"  # compression.type: keep the compression of the producer
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
HEADER = "header"
RECORDS = "records"


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of one topic: times in milliseconds, sizes in bytes. `Log.configure` replaces them."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = PRODUCER
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NO_LIMIT
    flush_ms: int = NO_LIMIT
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = NO_LIMIT
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = NO_LIMIT
    message_timestamp_type: str = CREATE_TIME
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
    # Properties of the broker that no topic can override; the first is not Kafka's.
    record_validation: str = HEADER
    producer_id_expiration_ms: int = 86_400_000

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def has_retention(self) -> bool:
        """True if segments are deleted by age and by the size of the log."""
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment rolls: also when its records must become compactable (KIP-354)."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms
