"""Partitioners: the partition of a record that names none, as the setting `partitioner` says.

| partitioner | record | partition | source |
|---|---|---|---|
| `"default"` | with a key | `(murmur2(key) & 0x7fffffff) % partitions`, as in Java | `BuiltInPartitioner` |
| | without | one partition for `batch_size` bytes, so that batches fill; then another | KIP-794 |
| `"murmur2"` | any | by the hash of its key; without a key, by the hash of an empty key | librdkafka |
| `"sticky"` | any | as "default" without a key | `partitioner.ignore.keys` |
| `"round_robin"` | any | one after the other | `RoundRobinPartitioner` |
| `"random"` | any | at random | librdkafka |
| a function | any | the function's result (`Partitioner`) | `partitioner.class` |

Sticky, round-robin and random choices skip partitions without a leader. Differs from Kafka: the next sticky partition
is drawn evenly, not weighted by queue length (`partitioner.adaptive.partitioning.enable`).
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

`send` calls it once for each record that names no partition; it must not block, and `send` raises its exceptions.
"""

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_R: Final = 24
_MASK: Final = 0xFFFFFFFF


_WORDS: Final = tuple(struct.Struct(f"<{count}I").unpack_from for count in range(64))
"""Entry n unpacks n words."""


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of Austin Appleby, with the seed of Kafka's clients, as an unsigned number."""
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
    """The partition of a key in a topic with this many partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class TopicPartitioner(Protocol):
    """Chooses the partitions of one topic's records; a producer has one for each topic."""

    def update(self, partitions: int, available: Sequence[int]) -> None:
        """Set the number of partitions; `available` are those with a leader, or all if none has one."""
        ...

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:
        """Choose the partition of a record; `size` is roughly the bytes of its data."""
        ...


class _Sticky:
    """One partition for `share` bytes, then another."""

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

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - the same for all keys and values
        if self._left > 0:
            self._left -= size
            return self.partition
        return self._next(size)

    def _next(self, size: int) -> int:
        """Choose another partition, beginning with a record of this size."""
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

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - not the value
        if key is not None:
            return partition_of_key(key, self._partitions)
        if self._left > 0:
            self._left -= size
            return self.partition
        return self._next(size)


class _Hash:
    """The hash of the key, or of an empty one."""

    __slots__ = ("_partitions",)

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - a leader or not
        self._partitions = partitions

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - the key alone
        return partition_of_key(key or b"", self._partitions)


class _RoundRobin:
    """The available partitions in turn, starting at a random one."""

    __slots__ = ("_available", "_turn")

    def __init__(self) -> None:
        self._turn = random.randrange(1 << 16)

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - no hash here
        self._available = available

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - the same for all keys and values
        self._turn += 1
        return self._available[self._turn % len(self._available)]


class _Random:
    """An available partition at random."""

    __slots__ = ("_available",)

    def update(self, partitions: int, available: Sequence[int]) -> None:  # noqa: ARG002 - no hash here
        self._available = available

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - the same for all keys and values
        return random.choice(self._available)


class _UserFunction:
    """The result of the user's function."""

    __slots__ = ("_available", "_function", "_partitions", "_topic")

    def __init__(self, topic: str, function: Partitioner) -> None:
        self._topic = topic
        self._function: Callable[..., Any] = function  # its result is checked below

    def update(self, partitions: int, available: Sequence[int]) -> None:
        self._partitions = partitions
        self._available = available

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002 - users do not get it
        partition = self._function(self._topic, key, value, self._partitions, self._available)
        if partition not in range(self._partitions):
            raise ConfigurationError(
                "choose a partition",
                f"the partitioner returned {partition!r}, and the topic has {pluralize(self._partitions, 'partition')}",
                "Return an index from 0 to the number of partitions minus 1",
                topic=self._topic,
            )
        return index(partition)  # a user's whole number may have another type


def topic_partitioner(topic: str, chosen: Partitioner | PartitionerName, share: int) -> TopicPartitioner:
    """Create the partitioner of a topic; a sticky one changes its partition after `share` bytes."""
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
