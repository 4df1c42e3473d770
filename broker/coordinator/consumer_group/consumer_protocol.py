"""What members of the classic protocol say in the bytes of JoinGroup, and are told in those of SyncGroup.

`protocol.stored_records.consumer_protocol` draws the messages. A version comes before each; one that is newer than
those known is read as the newest known, because later versions only add to the end.
"""

from __future__ import annotations

import struct

from broker.coordinator.consumer_group.member import TopicPartitionIds
from broker.metadata.image import MetadataImage
from protocol.codec import decode, encode_into
from protocol.errors import RemoteProtocolError
from protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

NAME = "consumer"

_VERSION = struct.Struct(">h")
_NEWEST = 3


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Raises RemoteProtocolError."""
    return decode(ConsumerProtocolSubscription, _version(metadata), metadata, _VERSION.size)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """No bytes are an empty assignment. Raises RemoteProtocolError."""
    if not data:
        return ConsumerProtocolAssignment()
    return decode(ConsumerProtocolAssignment, _version(data), data, _VERSION.size)


def write_assignment(assigned: TopicPartitionIds, image: MetadataImage, metadata: bytes) -> bytes:
    """Return the assignment in the version that the member's `metadata` has; deleted topics are left out.

    Raises RemoteProtocolError.
    """
    topics = {
        image.topics_by_id[topic_id].name: assigned[topic_id] for topic_id in assigned if topic_id in image.topics_by_id
    }
    version = _version(metadata)
    data = bytearray(_VERSION.pack(version))
    rows = [TopicPartition(name, sorted(topics[name])) for name in sorted(topics)]
    encode_into(ConsumerProtocolAssignment(rows), version, data)
    return bytes(data)


def topic_partition_ids(topics: list[TopicPartition], image: MetadataImage) -> dict[bytes, list[int]]:
    """Return partitions by topic id; topics that do not exist are left out."""
    return {image.topics[row.topic].topic_id: row.partitions for row in topics if row.topic in image.topics}


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise RemoteProtocolError("no version of the consumer protocol")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise RemoteProtocolError(f"version {version} of the consumer protocol")
    return min(int(version), _NEWEST)
