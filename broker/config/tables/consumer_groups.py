"""Properties of groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from odradek.broker.config.bounds import OneOfAnyCase, at_least
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT, LIST, STRING

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class ConsumerGroupProperties(Table):
    """Groups whose partitions are assigned by the broker."""

    group_consumer_session_timeout_ms = Property(
        "group.consumer.session.timeout.ms", INT, 45_000, at_least(1),
        doc="A member that has not sent a heartbeat for so long is out of its group. A single group may have another "
            "value, as `consumer.session.timeout.ms`.",
    )
    group_consumer_min_session_timeout_ms = Property(
        "group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1),
        doc="The least value that group.consumer.session.timeout.ms may have.",
    )
    group_consumer_max_session_timeout_ms = Property(
        "group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1),
        doc="The greatest value that group.consumer.session.timeout.ms may have.",
    )
    group_consumer_heartbeat_interval_ms = Property(
        "group.consumer.heartbeat.interval.ms", INT, 5_000, at_least(1),
        doc="How often members are told to send heartbeats. A single group may have another value, as "
            "`consumer.heartbeat.interval.ms`.",
    )
    group_consumer_min_heartbeat_interval_ms = Property(
        "group.consumer.min.heartbeat.interval.ms", INT, 5_000, at_least(1),
        doc="The least value that group.consumer.heartbeat.interval.ms may have.",
    )
    group_consumer_max_heartbeat_interval_ms = Property(
        "group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1),
        doc="The greatest value that group.consumer.heartbeat.interval.ms may have.",
    )
    group_consumer_assignment_interval_ms = Property(
        "group.consumer.assignment.interval.ms", INT, 1_000, at_least(0), dynamic=True,
        doc="A group's partitions are assigned anew only so long after the last time, so that members that come in "
            "one by one share an assignment. A single group may have another value, as "
            "`consumer.assignment.interval.ms`.",
    )
    group_consumer_min_assignment_interval_ms = Property(
        "group.consumer.min.assignment.interval.ms", INT, 0, at_least(0),
        doc="The least value that group.consumer.assignment.interval.ms may have.",
    )
    group_consumer_max_assignment_interval_ms = Property(
        "group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0),
        doc="The greatest value that group.consumer.assignment.interval.ms may have.",
    )
    group_consumer_assignors = Property(
        "group.consumer.assignors", LIST, ["uniform", "range"],
        doc="The assignors that members may choose from; the first is that of groups whose members do not choose.",
    )
    group_consumer_max_size = Property(
        "group.consumer.max.size", INT, 0x7FFFFFFF, at_least(1),
        doc="How many members a group of the consumer protocol may have.",
    )
    group_consumer_migration_policy = Property(
        "group.consumer.migration.policy", STRING, "bidirectional",
        OneOfAnyCase(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
        doc="Whether a group with members may go over to the consumer protocol when the first member with it joins "
            "(upgrade), and back when the last one leaves (downgrade).",
    )
