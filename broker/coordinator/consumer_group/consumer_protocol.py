"""The bytes in JoinGroup and SyncGroup of consumers of the classic protocol: subscriptions and assignments.

`odradek.protocol.stored_records.consumer_protocol` draws the messages.
"""

from __future__ import annotations

from odradek.broker.coordinator.consumer_group.member import TopicPartitionIds
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_consumer_protocol,
    read_version,
    write_consumer_protocol,
)

NAME = "consumer"


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Return the subscription in the metadata of a protocol. Raises RemoteProtocolError."""
    return read_consumer_protocol(ConsumerProtocolSubscription, metadata)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Return the assignment; without any bytes it is empty. Raises RemoteProtocolError."""
    return read_consumer_protocol(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()


def write_assignment(assigned: TopicPartitionIds, image: MetadataImage, metadata: bytes) -> bytes:
    """Return the assignment in the version of the member's `metadata`, without deleted topics.

    Raises RemoteProtocolError.
    """
    topics = {
        image.topics_by_id[topic_id].name: assigned[topic_id] for topic_id in assigned if topic_id in image.topics_by_id
    }
    rows = [TopicPartition(name, sorted(topics[name])) for name in sorted(topics)]
    return write_consumer_protocol(ConsumerProtocolAssignment(rows), read_version(metadata))


def topic_partition_ids(topics: list[TopicPartition], image: MetadataImage) -> dict[bytes, list[int]]:
    """Return the partitions by topic id, without topics that do not exist."""
    return {image.topics[row.topic].topic_id: row.partitions for row in topics if row.topic in image.topics}
