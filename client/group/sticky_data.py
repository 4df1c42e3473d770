"""What members of a group with the assignor `sticky` say that they owned last, in the user data of a subscription.

```
topics        int32 count, each: name (int16 length, UTF-8), partitions (int32 count, int32 each)
generation    int32, since Kafka 2.3; -1 unknown
```
Source: Kafka `StickyAssignor.StickyAssignorUserData`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from odradek.client.group.consumer_protocol import by_topic
from odradek.client.record import TopicPartition

_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")


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
    """What was owned, and in which generation; nothing if the bytes are not as above, for they may be anybody's."""
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
