"""The topics that members read: the names that they subscribe to, and those that their regular expression matches.

`metadata_hash` changes if anything changes that the group's assignment depends on. It is stored with the group's epoch;
a different hash makes a new epoch. Its bytes are those of Kafka's `Utils.computeTopicHash` and `computeGroupHash`, so
that a group is not rebalanced because another broker serves it:

```
topic   xxh3-64 of   0 as byte ∣ topic id, its two halves as longs ∣ name as text ∣ number of partitions as int
                     ∣ for each partition: its number as int ∣ for each rack of its replicas, sorted: length ∣ text
group   xxh3-64 of   the hashes of the topics that exist, as longs, by name; 0 without any
text    UTF-16 ∣ its length in units of 16 bits as int
```
All numbers are little-endian; the result is a signed long.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import xxhash

from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.regular_expressions import ResolvedExpression
from odradek.broker.metadata.image import MetadataImage, TopicImage

Expressions = Mapping[str, ResolvedExpression]


def topic_names(member: ConsumerMember, expressions: Expressions) -> frozenset[str]:
    """Return the names that the member reads. An expression that is not resolved yet matches nothing."""
    resolved = expressions.get(member.subscribed_topic_regex)
    return member.subscribed_topic_names if resolved is None else member.subscribed_topic_names | resolved.topics


def topic_ids(names: Iterable[str], image: MetadataImage) -> frozenset[bytes]:
    """Return the ids of those topics that exist."""
    topics = image.topics
    return frozenset(topics[name].topic_id for name in names if name in topics)


def all_topic_names(members: Iterable[ConsumerMember], expressions: Expressions) -> frozenset[str]:
    """Return the names that any of the members reads."""
    # Most members of a group read the same topics, so equal sets are found first, and names united after that.
    return frozenset().union(*{topic_names(member, expressions) for member in members})


def metadata_hash(names: Iterable[str], image: MetadataImage) -> int:
    """Return the hash of the topics with these names, without those that do not exist."""
    racks = {node_id: broker.rack for node_id, broker in image.brokers.items() if broker.rack is not None}
    hashes = [_topic_hash(image.topics[name], racks) for name in sorted(names) if name in image.topics]
    return _signed(b"".join(hashes)) if hashes else 0


def _topic_hash(topic: TopicImage, racks: Mapping[int, str]) -> bytes:
    count = len(topic.partitions)
    head = [b"\0", topic.topic_id[7::-1], topic.topic_id[:7:-1], _text(topic.name), _int(count)]
    if racks:
        rows = [_int(number) + _racks(topic.partitions[number].replicas, racks) for number in range(count)]
    else:
        rows = [struct.pack(f"<{count}i", *range(count))]
    return xxhash.xxh3_64_digest(b"".join(head + rows))[::-1]


def _racks(replicas: list[int], racks: Mapping[int, str]) -> bytes:
    names = sorted(racks[replica] for replica in replicas if replica in racks)
    return b"".join(_int(len(name)) + _text(name) for name in names)


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return encoded + _int(len(encoded) // 2)


def _int(number: int) -> bytes:
    return number.to_bytes(4, "little")


def _signed(data: bytes) -> int:
    return int.from_bytes(xxhash.xxh3_64_digest(data), "big", signed=True)
