"""Properties of group coordination: how groups rebalance, and how their offsets are kept."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT, LONG, SHORT

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class GroupProperties(Table):
    """Consumer groups and their offsets."""

    group_initial_rebalance_delay_ms = Property(
        "group.initial.rebalance.delay.ms", INT, 3_000,
        doc="How long a group that was empty waits for more members before it rebalances for the first time, after "
            "each that comes. A broker in the process of a program that does not set it waits 0.",
    )
    group_min_session_timeout_ms = Property(
        "group.min.session.timeout.ms", INT, 6_000,
        doc="The shortest session timeout that a member of a classic group may ask for. Shorter ones notice failed "
            "members sooner and cost more heartbeats.",
    )
    group_max_session_timeout_ms = Property(
        "group.max.session.timeout.ms", INT, 1_800_000,
        doc="The longest session timeout that a member of a classic group may ask for.",
    )
    group_max_size = Property(
        "group.max.size", INT, 0x7FFFFFFF, at_least(1), doc="How many members a classic group may have."
    )
    offset_metadata_max_bytes = Property(
        "offset.metadata.max.bytes", INT, 4_096,
        doc="The longest text (in UTF-16 code units) that a client may commit beside an offset.",
    )
    offsets_commit_timeout_ms = Property(
        "offsets.commit.timeout.ms", INT, 5_000, at_least(1),
        doc="How long a change of a group waits for all in-sync replicas of its records.",
    )
    offsets_load_buffer_size = Property(
        "offsets.load.buffer.size", INT, 5_242_880, at_least(1),
        doc="How much is read at a time when groups are loaded; a batch that is larger is read whole.",
    )
    offsets_retention_minutes = Property(
        "offsets.retention.minutes", INT, 10_080, at_least(1),
        doc="How long committed offsets are kept after their group lost its last member; of a group that never had "
            "any, or of a topic that a group of consumers does not read any more, after the commit.",
    )
    offsets_retention_check_interval_ms = Property(
        "offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), doc="How often offsets are let go of.",
    )
    offsets_topic_compression_codec = Property(
        "offsets.topic.compression.codec", INT, 0,
        doc="How the records of groups are compressed: 0 not, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_topic_num_partitions = Property(
        "offsets.topic.num.partitions", INT, 50, at_least(1),
        doc="Partitions of __consumer_offsets when it is created. It must never change afterwards.",
    )
    offsets_topic_replication_factor = Property(
        "offsets.topic.replication.factor", SHORT, 3, at_least(1),
        doc="Replicas of __consumer_offsets when it is created; no more than there are brokers at that time.",
    )
    offsets_topic_segment_bytes = Property(
        "offsets.topic.segment.bytes", INT, 104_857_600, at_least(1),
        doc="The segment size of __consumer_offsets when it is created; small ones are compacted and loaded faster.",
    )
