"""What a broker knows of its cluster: everything in the metadata store as of one revision, in memory.

Images are immutable; a change makes a new one that shares what did not change (`image_builder`). Request handlers read
nothing else. Dictionaries and lists in them are never changed after the image is published.
"""

from __future__ import annotations

import msgspec

from odradek.broker.metadata.values import STARTING, Listener


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """One partition. `leader` -1: none. `isr` maps replicas to the broker epoch under which they were found in sync."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: dict[int, int]
    partition_epoch: int
    eligible_leader_replicas: list[int] = []
    adding_replicas: list[int] = []
    removing_replicas: list[int] = []
    # The stored state and its revision: what a transaction that changes it compares, and rewrites.
    state_revision: int = 0
    state_value: bytes = b""


class TopicImage(msgspec.Struct, frozen=True):
    """One topic with its partitions by index, and what its properties are set to."""

    name: str
    topic_id: bytes
    partitions: list[PartitionImage]
    configs: dict[str, str] = {}
    name_revision: int = 0
    configs_revision: int = 0

    def partition(self, index: int) -> PartitionImage | None:
        """The partition; None where the topic has none of that index, which a client may have made up."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class BrokerImage(msgspec.Struct, frozen=True):
    """One registered broker; `intact_since` is the oldest broker epoch from which on it has lost nothing."""

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
        """Whether it serves: a broker that is still starting is not shown to clients and leads nothing."""
        return self.state != STARTING


class MetadataImage(msgspec.Struct, frozen=True):
    """The cluster at `revision`. `brokers` are those that serve, `registered` all; `controller_id` -1: none."""

    revision: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    controller_epoch: int = 0
    topics: dict[str, TopicImage] = {}
    topics_by_id: dict[bytes, TopicImage] = {}
    brokers: dict[int, BrokerImage] = {}
    registered: dict[int, BrokerImage] = {}
    # What was set at run time for each broker, or (None) for all, with the revision that it was set at.
    broker_configs: dict[int | None, tuple[dict[str, str], int]] = {}
    # Configurations by topic name, whether the topic exists (any more) or not, each with its revision.
    topic_configs: dict[str, tuple[dict[str, str], int]] = {}
    # Configurations by group id, whether there is the group (any more) or not, each with its revision.
    group_configs: dict[str, tuple[dict[str, str], int]] = {}
    # Partitions that no name covers: of topics about to appear or to grow, or left over from a failed creation.
    uncovered: dict[bytes, dict[int, PartitionImage]] = {}

    def dynamic_configs(self, node_id: int) -> dict[str, str]:
        """Return what was set at run time as it holds for one broker: its own over that of all."""
        everybody, own = (self.broker_configs.get(each, ({}, 0))[0] for each in (None, node_id))
        return {**everybody, **own}
