"""The metadata of the cluster: an immutable image, and the changes by a response to Metadata.

Leader epochs only grow while a topic keeps its id, so a response from a broker with older metadata does not replace a
newer leader (KIP-320). Topics that are not in a response stay as they are; topics that it reports as deleted are
removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from odradek.client.config import Address
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.schema import ZERO_UUID

NO_LEADER = -1

STALE_METADATA = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
    }
)
"""Error codes of a broker if the metadata of the client, or its own, are out of date."""

_DELETED = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class PartitionMetadata(NamedTuple):
    """A partition. `leader` is a node id, or NO_LEADER; `leader_epoch` is -1 if the broker does not report it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicMetadata(NamedTuple):
    """A topic. `partitions` is indexed by partition; `topic_id` is ZERO_UUID if the broker has none."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionMetadata, ...]


class ClusterImage(NamedTuple):
    """The brokers by node id, the topics by name, and the errors of topics in the last response, by name."""

    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, Address] = {}
    topics: Mapping[str, TopicMetadata] = {}
    errors: Mapping[str, ErrorCode] = {}

    def partition(self, topic: str, index: int) -> PartitionMetadata | None:
        """The partition, or None if it is unknown."""
        known = self.topics.get(topic)
        if known is None or not 0 <= index < len(known.partitions):
            return None
        return known.partitions[index]

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, or None."""
        return next((topic.name for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def merge(self, response: MetadataResponse) -> ClusterImage:
        """Return the image after a response to Metadata."""
        topics = dict(self.topics)
        errors: dict[str, ErrorCode] = {}
        for topic in response.topics:
            name = topic.name
            if name is None:
                continue
            if topic.error_code:
                errors[name] = ErrorCode.of(topic.error_code)
                if topic.error_code in _DELETED:
                    topics.pop(name, None)
            else:
                topics[name] = _merge_topic(topics.get(name), name, topic)
        return ClusterImage(
            response.cluster_id,
            response.controller_id,
            {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers},
            topics,
            errors,
        )

    def only(self, names: Collection[str]) -> ClusterImage:
        """Return the image without all other topics, or itself if it has no other."""
        if self.topics.keys() <= set(names):
            return self
        return self._replace(topics={name: topic for name, topic in self.topics.items() if name in names})

    def with_leader(self, topic: str, index: int, leader: int, leader_epoch: int) -> ClusterImage:
        """Return the image with a new leader of a partition (KIP-951), or itself if nothing changes."""
        known = self.partition(topic, index)
        if known is None or leader_epoch <= known.leader_epoch or leader not in self.brokers:
            return self
        partitions = list(self.topics[topic].partitions)
        partitions[index] = known._replace(leader=leader, leader_epoch=leader_epoch)
        return self._replace(topics={**self.topics, topic: self.topics[topic]._replace(partitions=tuple(partitions))})

    def with_brokers(self, brokers: Iterable[tuple[int, Address]]) -> ClusterImage:
        """Return the image with new addresses of brokers (KIP-951), or itself if nothing changes."""
        news = {node_id: address for node_id, address in brokers if self.brokers.get(node_id) != address}
        return self._replace(brokers={**self.brokers, **news}) if news else self


def _merge_topic(known: TopicMetadata | None, name: str, topic: MetadataResponseTopic) -> TopicMetadata:
    before: tuple[PartitionMetadata, ...] = ()
    if known is not None and topic.topic_id in (known.topic_id, ZERO_UUID):
        before = known.partitions
    partitions = []
    for index, partition in enumerate(sorted(topic.partitions, key=lambda partition: partition.partition_index)):
        merged = _partition(partition)
        if index < len(before) and merged.leader_epoch < before[index].leader_epoch:
            merged = before[index]
        partitions.append(merged)
    return TopicMetadata(name, topic.topic_id, tuple(partitions))


def _partition(row: MetadataResponsePartition) -> PartitionMetadata:
    return PartitionMetadata(row.leader_id, row.leader_epoch, tuple(row.replica_nodes), tuple(row.isr_nodes))
