"""The bytes that members of a classic group exchange through the broker, converted from and to partitions.

`odradek.protocol.stored_records.consumer_protocol` specifies subscriptions and assignments. The user data of a
subscription with the assignor `sticky` lists the partitions that the member owned last:

```
topics        int32 count, each: name (int16 length, UTF-8), partitions (int32 count, int32 each)
generation    int32, since Kafka 2.3; -1 unknown
```
Source: Kafka `StickyAssignor.StickyAssignorUserData`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypeVar

from odradek.client.record import TopicPartition
from odradek.protocol.buffer import Buffer
from odradek.protocol.stored_records import consumer_protocol
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_consumer_protocol,
)

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)

_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")


def decode_consumer_protocol(kind: type[M], data: Buffer) -> M:
    """Decode a message; no bytes are an empty message. Raises RemoteProtocolError."""
    return read_consumer_protocol(kind, data) if data else kind()


def assigned(message: ConsumerProtocolAssignment) -> list[TopicPartition]:
    """The partitions of an assignment, in its order."""
    return _flat(message.assigned_partitions)


def owned(message: ConsumerProtocolSubscription) -> list[TopicPartition]:
    """The owned partitions of a subscription, in its order."""
    return _flat(message.owned_partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> list[consumer_protocol.TopicPartition]:
    """Group partitions by topic, as the messages do."""
    topics: dict[str, consumer_protocol.TopicPartition] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, consumer_protocol.TopicPartition(topic, [])).partitions.append(partition)
    return list(topics.values())


def _flat(topics: Iterable[consumer_protocol.TopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(of_topic.topic, index) for of_topic in topics for index in of_topic.partitions]


def encode_sticky_data(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    topics = by_topic(sorted(partitions))
    out = bytearray(_INT.pack(len(topics)))
    for of_topic in topics:
        name = of_topic.topic.encode()
        out += _SHORT.pack(len(name)) + name + _INT.pack(len(of_topic.partitions))
        for index in of_topic.partitions:
            out += _INT.pack(index)
    return bytes(out + _INT.pack(generation))


def decode_sticky_data(data: bytes) -> tuple[list[TopicPartition], int]:
    """The owned partitions and their generation; ([], -1) for bytes of another form: user data has no standard."""
    try:
        return _decode(data)
    except (struct.error, UnicodeDecodeError):
        return [], -1


def _decode(data: bytes) -> tuple[list[TopicPartition], int]:
    (topics,) = _INT.unpack_from(data)
    position = _INT.size
    partitions = []
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(data, position)
        position += _SHORT.size
        name = data[position : position + length].decode()
        position += length
        (count,) = _INT.unpack_from(data, position)
        position += _INT.size
        for _ in range(count):
            partitions.append(TopicPartition(name, *_INT.unpack_from(data, position)))
            position += _INT.size
    generation = _INT.unpack_from(data, position)[0] if position < len(data) else -1
    return partitions, generation
