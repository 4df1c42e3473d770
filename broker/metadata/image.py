"""The image of the cluster: the whole metadata store at one revision, in memory.

Images are immutable. A change creates a new one, which shares everything unchanged with the old one (`image_builder`).
Dictionaries and lists in an image never change after it is published. Request handlers read only images.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from odradek.broker.metadata.client_quotas import StoredQuotas
from odradek.broker.metadata.features import FEATURES, TRANSACTION_VERSION, level_of
from odradek.broker.metadata.scram_users import ScramUsers
from odradek.broker.metadata.stored_rules import StoredRules
from odradek.broker.metadata.values import DRAINING, STARTING, DeletedTopic, KnownBroker, Listener


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """One partition. `leader` -1: none.

    `isr` maps each in-sync replica to its broker epoch when it joined the ISR; so does `eligible_leader_replicas`.
    """

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: dict[int, int]
    partition_epoch: int
    eligible_leader_replicas: dict[int, int] = {}
    adding_replicas: list[int] = []
    removing_replicas: list[int] = []
    # The stored state and its revision, which a transaction compares and rewrites.
    state_revision: int = 0
    state_value: bytes = b""
    created_revision: int = 0


class TopicImage(msgspec.Struct, frozen=True):
    """One topic: its partitions by index, and its own properties."""

    name: str
    topic_id: bytes
    partitions: list[PartitionImage]
    configs: dict[str, str] = {}
    name_revision: int = 0
    configs_revision: int = 0

    def partition(self, index: int) -> PartitionImage | None:
        """Return the partition, or None if the index, which a client may have invented, does not exist."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class BrokerImage(msgspec.Struct, frozen=True):
    """One registered broker. It has lost no record that it acknowledged under epoch `intact_since` or later.

    `host`: the machine, if it fails together with other workers there; "": it fails alone.
    """

    node_id: int
    epoch: int
    listeners: list[Listener]
    rack: str | None
    state: str
    incarnation: str
    intact_since: int
    log_dirs: list[str] = []
    host: str = ""
    revision: int = 0
    value: bytes = b""

    @property
    def is_alive(self) -> bool:
        """True if it serves clients. A broker that is still starting is not listed and leads nothing."""
        return self.state != STARTING

    @property
    def is_draining(self) -> bool:
        """True if it is stopping: it must not lead, nor be in an ISR that has another member (KIP-841)."""
        return self.state == DRAINING


class MetadataImage(msgspec.Struct, frozen=True):
    """The cluster at `revision`. `controller_id` -1: none.

    `brokers`: those that serve clients; `registered`: also those that are starting; `known`: all that have ever served
    and were not unregistered. `deleted`: topics by id, for a week after their deletion.
    """

    revision: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    controller_epoch: int = 0
    topics: dict[str, TopicImage] = {}
    topics_by_id: dict[bytes, TopicImage] = {}
    brokers: dict[int, BrokerImage] = {}
    registered: dict[int, BrokerImage] = {}
    known: dict[int, KnownBroker] = {}
    deleted: dict[bytes, DeletedTopic] = {}
    # The run-time properties of each broker, or (None) of all, with their revision.
    broker_configs: dict[int | None, tuple[dict[str, str], int]] = {}
    # Properties by topic name, with their revision; the topic need not exist (any more).
    topic_configs: dict[str, tuple[dict[str, str], int]] = {}
    # Properties by group id, with their revision; the group need not exist (any more).
    group_configs: dict[str, tuple[dict[str, str], int]] = {}
    client_quotas: StoredQuotas = {}
    # Partitions beyond the count in a name's record: a creation or growth is running, or was interrupted.
    uncovered: dict[bytes, dict[int, PartitionImage]] = {}
    # The levels of features as stored, with their revision.
    feature_levels: dict[str, int] = {}
    features_revision: int = 0
    rules: StoredRules = StoredRules()
    scram_users: ScramUsers = ScramUsers()

    def dynamic_configs(self, node_id: int) -> dict[str, str]:
        """Return the run-time properties that hold for one broker: its own, and those of all brokers."""
        of_all, own = (self.broker_configs.get(each, ({}, 0))[0] for each in (None, node_id))
        return {**of_all, **own}

    def host_of(self, node_id: int) -> str:
        """Return the machine of a broker that is a worker, also while it is down; "" for any other."""
        broker = self.registered.get(node_id) or self.known.get(node_id)
        return "" if broker is None else broker.host

    @property
    def features(self) -> dict[str, int]:
        """The level of each feature."""
        return {name: level_of(name, self.feature_levels) for name in FEATURES}

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version`."""
        return level_of(TRANSACTION_VERSION, self.feature_levels)


class ImageChange(NamedTuple):
    """The step from one image to the next.

    `topic_ids`: the topics that were created, deleted, or altered in any way. So whoever acts on a change has work for
    these topics alone, however many there are.
    """

    before: MetadataImage
    after: MetadataImage
    topic_ids: Collection[bytes]

    def topics(self) -> Iterator[tuple[TopicImage | None, TopicImage | None]]:
        """Yield each of these topics before and after; None where it does not exist."""
        for topic_id in self.topic_ids:
            yield self.before.topics_by_id.get(topic_id), self.after.topics_by_id.get(topic_id)

    def reassigned(self) -> Iterator[str]:
        """Yield the names of topics that were created, deleted or grown, or of which a replica moved.

        Not those of which only a leader, an ISR or a property changed: group members need not be assigned again then.
        """
        for old, new in self.topics():
            if old is None or new is None or _assignment(old) != _assignment(new):
                yield from {topic.name for topic in (old, new) if topic is not None}


def _assignment(topic: TopicImage) -> list[list[int]]:
    return [partition.replicas for partition in topic.partitions]
