"""Properties of group coordination: rebalances of classic groups, and committed offsets."""

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
        doc="The time for which an empty group waits for more members before its first rebalance, again after each "
        "that joins. The default of a broker inside another program is 0.",
    )
    group_min_session_timeout_ms = Property(
        "group.min.session.timeout.ms", INT, 6_000,
        doc="The shortest session timeout that a member of a classic group may request. Shorter ones detect failed "
        "members sooner, but need more heartbeats.",
    )
    group_max_session_timeout_ms = Property(
        "group.max.session.timeout.ms", INT, 1_800_000,
        doc="The longest session timeout that a member of a classic group may request.",
    )
    group_max_size = Property(
        "group.max.size", INT, 0x7FFFFFFF, at_least(1),
        doc="The most members of a classic group.",
    )
    offset_metadata_max_bytes = Property(
        "offset.metadata.max.bytes", INT, 4_096,
        doc="The longest text (in UTF-16 code units) that a client may commit with an offset.",
    )
    offsets_commit_timeout_ms = Property(
        "offsets.commit.timeout.ms", INT, 5_000, at_least(1),
        doc="The longest time that a change of a group waits until all in-sync replicas have its records.",
    )
    offsets_load_buffer_size = Property(
        "offsets.load.buffer.size", INT, 5_242_880, at_least(1),
        doc="The number of bytes that are read at a time when groups are loaded; a larger batch is read as a whole.",
    )
    offsets_retention_minutes = Property(
        "offsets.retention.minutes", INT, 10_080, at_least(1),
        doc="The time for which committed offsets are kept after their group lost its last member; after the commit, "
        "if the group never had members, or does not read the topic any more.",
    )
    offsets_retention_check_interval_ms = Property(
        "offsets.retention.check.interval.ms", LONG, 600_000, at_least(1),
        doc="The interval at which expired offsets are removed.",
    )
    offsets_topic_compression_codec = Property(
        "offsets.topic.compression.codec", INT, 0,
        doc="The compression of the records of groups: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_topic_num_partitions = Property(
        "offsets.topic.num.partitions", INT, 50, at_least(1),
        doc="The number of partitions of __consumer_offsets when it is created. It must never change afterwards. The "
        "default of a broker in a temporary directory is 1.",
    )
    offsets_topic_replication_factor = Property(
        "offsets.topic.replication.factor", SHORT, 3, at_least(1),
        doc="The number of replicas of __consumer_offsets when it is created. A single node creates it with one, and "
        "so do workers of one machine without etcd; a cluster creates it as soon as it has so many brokers.",
    )
    offsets_topic_segment_bytes = Property(
        "offsets.topic.segment.bytes", INT, 104_857_600, at_least(1),
        doc="The segment size of __consumer_offsets when it is created; small segments are compacted and loaded "
        "faster.",
    )
