"""Properties of topics: creation, deletion, replicas, leaders."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import Property, Table, TopicDefault
from odradek.broker.config.types import BOOLEAN, INT, LONG
from odradek.broker.storage.log_config import LogConfig

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class TopicProperties(Table):
    """Topics, their replicas and leaders."""

    num_partitions = Property(
        "num.partitions", INT, 1, at_least(1),
        doc="The number of partitions of a topic that is created without a number.",
    )
    default_replication_factor = Property(
        "default.replication.factor", INT, 1,
        doc="The number of replicas of a topic that is created without a number.",
    )
    auto_create_topics_enable = Property(
        "auto.create.topics.enable", BOOLEAN, True,
        doc="Whether a topic that a client requests is created if it does not exist.",
    )
    delete_topic_enable = Property(
        "delete.topic.enable", BOOLEAN, True,
        doc="Whether topics may be deleted.",
    )
    min_insync_replicas = TopicDefault(
        "min.insync.replicas", INT, LogConfig.min_insync_replicas, at_least(1),
        doc="The number of replicas that must be in sync for a write with acks=all, at most the number of replicas.",
    )
    replica_lag_time_max_ms = Property(
        "replica.lag.time.max.ms", LONG, 30_000,
        doc="The time after which a follower that has not caught up with its leader leaves the in-sync replicas.",
    )
    unclean_leader_election_enable = TopicDefault(
        "unclean.leader.election.enable", BOOLEAN, LogConfig.unclean_leader_election_enable,
        doc="Whether a replica that is not in sync may become the leader if no other is left; records may be lost "
        "then.",
    )
