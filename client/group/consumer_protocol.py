"""What members of a classic group tell each other through the broker, as partitions.

`odradek.protocol.stored_records.consumer_protocol` draws the messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from odradek.client.record import TopicPartition
from odradek.protocol.code_generation.primitives import Buffer
from odradek.protocol.stored_records import consumer_protocol
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_consumer_protocol,
)

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def decode_consumer_protocol(kind: type[M], data: Buffer) -> M:
    """The message in `data`; an empty one for no bytes at all. Raises RemoteProtocolError."""
    return read_consumer_protocol(kind, data) if data else kind()


def assigned(message: ConsumerProtocolAssignment) -> list[TopicPartition]:
    """The partitions of an assignment, in its order."""
    return _flat(message.assigned_partitions)


def owned(message: ConsumerProtocolSubscription) -> list[TopicPartition]:
    """The partitions that a subscriber says it owns, in its order."""
    return _flat(message.owned_partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> list[consumer_protocol.TopicPartition]:
    """Partitions as the messages have them."""
    topics: dict[str, consumer_protocol.TopicPartition] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, consumer_protocol.TopicPartition(topic, [])).partitions.append(partition)
    return list(topics.values())


def _flat(topics: Iterable[consumer_protocol.TopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(of_topic.topic, index) for of_topic in topics for index in of_topic.partitions]
