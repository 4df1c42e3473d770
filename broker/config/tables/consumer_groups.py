"""Properties of groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from odradek.broker.config.bounds import OneOfAnyCase, at_least
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT, LIST, STRING

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class ConsumerGroupProperties(Table):
    """Groups of the consumer protocol, whose partitions the broker assigns."""

    group_consumer_session_timeout_ms = Property(
        "group.consumer.session.timeout.ms", INT, 45_000, at_least(1),
        doc="The time without a heartbeat after which a member is removed from its group. A group may have its own "
        "value, `consumer.session.timeout.ms`.",
    )
    group_consumer_min_session_timeout_ms = Property(
        "group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1),
        doc="The least value of group.consumer.session.timeout.ms.",
    )
    group_consumer_max_session_timeout_ms = Property(
        "group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1),
        doc="The greatest value of group.consumer.session.timeout.ms.",
    )
    group_consumer_heartbeat_interval_ms = Property(
        "group.consumer.heartbeat.interval.ms", INT, 5_000, at_least(1),
        doc="The interval of members' heartbeats. A group may have its own value, `consumer.heartbeat.interval.ms`.",
    )
    group_consumer_min_heartbeat_interval_ms = Property(
        "group.consumer.min.heartbeat.interval.ms", INT, 5_000, at_least(1),
        doc="The least value of group.consumer.heartbeat.interval.ms.",
    )
    group_consumer_max_heartbeat_interval_ms = Property(
        "group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1),
        doc="The greatest value of group.consumer.heartbeat.interval.ms.",
    )
    group_consumer_assignment_interval_ms = Property(
        "group.consumer.assignment.interval.ms", INT, 1_000, at_least(0), dynamic=True,
        doc="The least time between two assignments of a group, so that members that join one after another share an "
        "assignment. A group may have its own value, `consumer.assignment.interval.ms`.",
    )
    group_consumer_min_assignment_interval_ms = Property(
        "group.consumer.min.assignment.interval.ms", INT, 0, at_least(0),
        doc="The least value of group.consumer.assignment.interval.ms.",
    )
    group_consumer_max_assignment_interval_ms = Property(
        "group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0),
        doc="The greatest value of group.consumer.assignment.interval.ms.",
    )
    group_consumer_assignors = Property(
        "group.consumer.assignors", LIST, ["uniform", "range"],
        doc="The assignors that members may choose; the first is the default.",
    )
    group_consumer_max_size = Property(
        "group.consumer.max.size", INT, 0x7FFFFFFF, at_least(1),
        doc="The most members of a group of the consumer protocol.",
    )
    group_consumer_migration_policy = Property(
        "group.consumer.migration.policy", STRING, "bidirectional",
        OneOfAnyCase(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
        doc="Whether a group with members may change to the consumer protocol when the first member that uses it "
        "joins (upgrade), and back when the last one leaves (downgrade).",
    )
