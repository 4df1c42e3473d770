"""The image of the cluster: the whole metadata store at one revision, in memory.

Images are immutable. A change creates a new one, which shares everything unchanged with the old one (`image_builder`).
Dictionaries and lists in an image never change after it is published. Request handlers read only images.
"""

from __future__ import annotations

import msgspec

from odradek.broker.metadata.values import STARTING, Listener


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """One partition. `leader` -1: none. `isr` maps each in-sync replica to its broker epoch when it joined the ISR."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: dict[int, int]
    partition_epoch: int
    eligible_leader_replicas: list[int] = []
    adding_replicas: list[int] = []
    removing_replicas: list[int] = []
    # The stored state and its revision, which a transaction compares and rewrites.
    state_revision: int = 0
    state_value: bytes = b""


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
    """One registered broker. It has lost no record that it acknowledged under epoch `intact_since` or later."""

    node_id: int
    epoch: int
    listeners: list[Listener]
    rack: str | None
    state: str
    incarnation: str
    intact_since: int
    revision: int = 0
    value: bytes = b""

    @property
    def is_alive(self) -> bool:
        """True if it serves clients. A broker that is still starting is not listed and leads nothing."""
        return self.state != STARTING


class MetadataImage(msgspec.Struct, frozen=True):
    """The cluster at `revision`. `brokers`: those that serve clients; `registered`: all. `controller_id` -1: none."""

    revision: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    controller_epoch: int = 0
    topics: dict[str, TopicImage] = {}
    topics_by_id: dict[bytes, TopicImage] = {}
    brokers: dict[int, BrokerImage] = {}
    registered: dict[int, BrokerImage] = {}
    # The run-time properties of each broker, or (None) of all, with their revision.
    broker_configs: dict[int | None, tuple[dict[str, str], int]] = {}
    # Properties by topic name, with their revision; the topic need not exist (any more).
    topic_configs: dict[str, tuple[dict[str, str], int]] = {}
    # Properties by group id, with their revision; the group need not exist (any more).
    group_configs: dict[str, tuple[dict[str, str], int]] = {}
    # Partitions beyond the count in a name's record: a creation or growth is running, or was interrupted.
    uncovered: dict[bytes, dict[int, PartitionImage]] = {}

    def dynamic_configs(self, node_id: int) -> dict[str, str]:
        """Return the run-time properties that hold for one broker: its own, and those of all brokers."""
        of_all, own = (self.broker_configs.get(each, ({}, 0))[0] for each in (None, node_id))
        return {**of_all, **own}
