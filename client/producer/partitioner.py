"""Which partition a record goes to that names none: the `partitioner` of the producer says.

| partitioner | record | partition | source |
|---|---|---|---|
| `"default"` | with a key | `(murmur2(key) & 0x7fffffff) % partitions`: equal keys meet | `BuiltInPartitioner` |
| | without | one until it has taken `batch_size` bytes, so that batches fill; then another | KIP-794 |
| `"murmur2"` | any | by the hash of its key; without one, by that of an empty key | librdkafka |
| `"sticky"` | any | as "default" without a key | `partitioner.ignore.keys` |
| `"round_robin"` | any | one after the other | `RoundRobinPartitioner` |
| `"random"` | any | at random | librdkafka |
| a function | any | what it returns (`Partitioner`) | `partitioner.class` |

Partitions without a leader are left out where there is a choice. Differs from Kafka: the next sticky partition is drawn
evenly, not weighted by the length of the queues (`partitioner.adaptive.partitioning.enable`).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

from odradek.client.errors import ConfigurationError
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from mypy_extensions import i64  # an int that takes a register where this module is compiled

PartitionerName = Literal["default", "murmur2", "sticky", "round_robin", "random"]
PARTITIONER_NAMES: tuple[PartitionerName, ...] = get_args(PartitionerName)

Partitioner = Callable[[str, bytes | None, bytes | None, int, Sequence[int]], int]
"""A user's partitioner: (topic, key, value, number of partitions, partitions that have a leader) → partition.

It is called in `send`, once for each record that names no partition, and may not block. What it raises, `send` raises.
"""

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_R: Final = 24
_MASK: Final = 0xFFFFFFFF


_WORDS: Final = tuple(struct.Struct(f"<{count}I").unpack_from for count in range(64))
"""Entry n reads n words."""


def murmur2(data: bytes) -> int:
    """Austin Appleby's MurmurHash2 of 32 bits with the seed that Kafka's clients share, as an unsigned number."""
    length = len(data)
    h: i64 = _SEED ^ length
    whole = length >> 2
    k: i64
    for k in _WORDS[whole](data) if whole < 64 else struct.unpack_from(f"<{whole}I", data):
        k = k * _M & _MASK
        h = (h * _M ^ (k ^ k >> _R) * _M) & _MASK
    rest = length & 3
    if rest:
        k = int.from_bytes(data[-rest:], "little")
        h = (h ^ k) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key in a topic of that many partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class TopicPartitioner(Protocol):
    """Chooses the partitions of one topic's records; a producer has one for each topic."""

    def update(self, partitions: int, available: Sequence[int]) -> None:
        """The topic has this many partitions; those `available` have a leader (all, if none has)."""
        ...

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:
        """The partition of a record that names none; `size` is about the bytes of its data."""
        ...


class _Sticky:
    """One partition until it has got `share` bytes, then another."""

    __slots__ = ("_available", "_left", "_share", "partition")

    def __init__(self, share: int) -> None:
        self.partition = -1  # none chosen yet
        self._share = share
        self._left = 0
        self._available: Sequence[int] = ()

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - no hash here
        self._available = available
        if self.partition not in available:
            self._left = 0

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - whatever it is
        if self._left > 0:
            self._left -= size
            return self.partition
        return self._next(size)

    def _next(self, size: int) -> int:
        """Move on to another partition with a record of this size."""
        others = [partition for partition in self._available if partition != self.partition]
        self.partition = random.choice(others or self._available)
        self._left = self._share - size
        return self.partition


class _HashOrSticky(_Sticky):
    """The hash of the key; without a key, as `_Sticky`."""

    __slots__ = ("_partitions",)

    def update(self, partitions: int, available: Sequence[int]) -> None:
        self._partitions = partitions
        super().update(partitions, available)

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - the key, or any
        if key is not None:
            return partition_of_key(key, self._partitions)
        if self._left > 0:
            self._left -= size
            return self.partition
        return self._next(size)


class _Hash:
    """The hash of the key, or of an empty one."""

    __slots__ = ("_partitions",)

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - also if it has no leader
        self._partitions = partitions

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - the key alone
        return partition_of_key(key or b"", self._partitions)


class _RoundRobin:
    """The available partitions in turn, from one at random on."""

    __slots__ = ("_available", "_turn")

    def __init__(self) -> None:
        self._turn = random.randrange(1 << 16)

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - no hash here
        self._available = available

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - whatever it is
        self._turn += 1
        return self._available[self._turn % len(self._available)]


class _Random:
    """An available partition at random."""

    __slots__ = ("_available",)

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - no hash here
        self._available = available

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - whatever it is
        return random.choice(self._available)


class _UserFunction:
    """What the user's function says."""

    __slots__ = ("_available", "_function", "_partitions", "_topic")

    def __init__(self, topic: str, function: Partitioner) -> None:
        self._topic = topic
        self._function: Callable[..., Any] = function  # whatever it returns is looked at below

    def update(self, partitions: int, available: Sequence[int]) -> None:
        self._partitions = partitions
        self._available = available

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - not for users
        partition = self._function(self._topic, key, value, self._partitions, self._available)
        if partition not in range(self._partitions):
            raise ConfigurationError(
                "choose a partition",
                f"the partitioner returned {partition!r}, and the topic has {pluralize(self._partitions, 'partition')}",
                "It returns an index from 0 to the number of partitions less 1",
                topic=self._topic,
            )
        return index(partition)  # of whatever type a user's whole number is


def topic_partitioner(topic: str, chosen: Partitioner | PartitionerName, share: int) -> TopicPartitioner:
    """The partitioner of a topic; `share` is the number of bytes after which a sticky one moves on."""
    match chosen:
        case "default":
            return _HashOrSticky(share)
        case "murmur2":
            return _Hash()
        case "sticky":
            return _Sticky(share)
        case "round_robin":
            return _RoundRobin()
        case "random":
            return _Random()
        case _:
            return _UserFunction(topic, chosen)
