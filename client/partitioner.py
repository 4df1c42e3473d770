"""Which partition a record goes to.

| record | partition | source |
|---|---|---|
| names one | that one | |
| has a key | `(murmur2(key) & 0x7fffffff) % partitions`: equal keys meet | Kafka `BuiltInPartitioner` |
| has no key | one until it has taken `batch_size` bytes, so that batches fill; then another at random | KIP-794 |

Differs from Kafka: the next partition is drawn evenly from those that have a leader, not weighted by the length of
their queues (`partitioner.adaptive.partitioning.enable`).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from functools import cache

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF


@cache
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


def murmur2(data: bytes) -> int:
    """Austin Appleby's MurmurHash2 of 32 bits with the seed that Kafka's clients share, as an unsigned number."""
    length = len(data)
    h = _SEED ^ length
    whole = length >> 2
    for k in (_words(whole) if whole < 64 else struct.Struct(f"<{whole}I")).unpack_from(data):
        k = k * _M & _MASK
        h = h * _M & _MASK ^ (k ^ k >> _R) * _M & _MASK
    rest = length & 3
    if rest:
        h = (h ^ int.from_bytes(data[-rest:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key in a topic of that many partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartition:
    """The partition that records of one topic without a key go to now, and how many bytes it has still to get."""

    __slots__ = ("_left", "_share", "partition")

    def __init__(self, share: int) -> None:
        self.partition = -1  # none chosen yet
        self._share = share
        self._left = 0

    def has_room(self, size: int) -> bool:
        """Whether a record of `size` bytes goes there too; if so, it is counted."""
        if self._left <= 0:
            return False
        self._left -= size
        return True

    def choose(self, available: Sequence[int], size: int) -> int:
        """Go to another of the available partitions, if there is another, with a record of `size` bytes."""
        others = [partition for partition in available if partition != self.partition]
        self.partition = random.choice(others or list(available))
        self._left = self._share - size
        return self.partition

    def leave(self) -> None:
        """The partition is not available any more."""
        self._left = 0
