"""What members of a classic group tell each other through the broker: subscriptions and assignments as bytes.

```
version   int16    of what follows; one above those known here is read as the last that is known
message            `protocol.stored_records.consumer_protocol`
```
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypeVar

from client.record import TopicPartition
from protocol.codec import decode, encode
from protocol.errors import RemoteProtocolError
from protocol.primitives import Buffer
from protocol.schema import Message, spec
from protocol.stored_records import consumer_protocol
from protocol.stored_records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)

_VERSION = struct.Struct(">h")


def encode_consumer_protocol(message: Message, version: int) -> bytes:
    """The bytes of a subscription or assignment."""
    return _VERSION.pack(version) + bytes(encode(message, version))


def decode_consumer_protocol(kind: type[M], data: Buffer) -> M:
    """The message in `data`; an empty one for no bytes at all. Raises RemoteProtocolError."""
    if not data:
        return kind()
    if len(data) < _VERSION.size:
        raise RemoteProtocolError(f"a {kind.__name__} of {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise RemoteProtocolError(f"a {kind.__name__} of version {version}")
    return decode(kind, min(version, spec(kind).last_version), data, _VERSION.size)


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
