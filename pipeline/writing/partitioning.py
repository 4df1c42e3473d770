"""The partition of each record of an Arrow batch, as Kafka's producer chooses it, for all records at once.

| record | partition |
|---|---|
| with a number in column `partition` | that one |
| with a key | `(murmur2(key) & 0x7fffffff) % partitions`, as in the Java producer |
| without a key | one partition until it has the bytes of a batch, then the next, so that batches fill (KIP-794) |

The hash of all keys is calculated in parallel: first the first word of every key, then the second word of keys that
have one. Python executes one step a word, regardless of the number of keys. Source: Kafka `Utils.murmur2`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from odradek.pipeline.records.arrow_values import numbers_of

if TYPE_CHECKING:
    Ints = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint32]

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_R: Final = np.uint32(24)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def murmur2(keys: Any) -> Words:
    """Return the hash of each element of a binary array; a null counts as an empty key."""
    bounds = np.frombuffer(keys.buffers()[1], dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1]
    buffer = keys.buffers()[2]
    data = np.frombuffer(buffer, dtype=np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    starts = bounds[:-1].astype(np.int64)
    lengths = np.diff(bounds).astype(np.int64)
    if keys.null_count:
        lengths[numbers_of(keys.is_null())] = 0
    hashes = _SEED ^ lengths.astype(np.uint32)
    longest_first = np.argsort(-lengths, kind="stable")
    words = lengths[longest_first] >> 2
    for number in range(int(words[0]) if len(words) else 0):
        rows = longest_first[: np.searchsorted(-words, -number, side="left")]  # keys with more words than `number`
        k = _word(data, starts[rows] + 4 * number) * _M
        hashes[rows] = (hashes[rows] * _M) ^ ((k ^ (k >> _R)) * _M)
    _mix_tail(hashes, data, starts, lengths)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
    return hashes ^ (hashes >> np.uint32(15))


def partitions_of_keys(keys: Any, partitions: int) -> Ints:
    """Return the partition of each key in a topic with `partitions` partitions."""
    chosen: Ints = (murmur2(keys) & _POSITIVE).astype(np.int64) % partitions
    return chosen


class StickyPartitions:
    """The partitions of records without a key: `batch_bytes` bytes to each in turn, in a random order."""

    def __init__(self, partitions: int, batch_bytes: int) -> None:
        self._order = np.array(random.sample(range(partitions), partitions), dtype=np.int64)
        self._batch_bytes = batch_bytes
        self._total_bytes = 0

    def choose(self, sizes: Ints) -> Ints:
        """Return the partitions of the next records, whose sizes in bytes are given."""
        before = self._total_bytes + np.cumsum(sizes) - sizes
        self._total_bytes += int(sizes.sum())
        chosen: Ints = self._order[(before // self._batch_bytes) % len(self._order)]
        return chosen


def _word(data: npt.NDArray[np.uint8], at: Ints) -> Words:
    word = data[at].astype(np.uint32)
    for byte in range(1, 4):
        word |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


def _mix_tail(hashes: Words, data: npt.NDArray[np.uint8], starts: Ints, lengths: Ints) -> None:
    """Mix in the one to three bytes after the last whole word."""
    rest = lengths & 3
    for byte in (2, 1, 0):
        rows = np.flatnonzero(rest > byte)
        at = starts[rows] + (lengths[rows] & ~3) + byte
        hashes[rows] ^= data[at].astype(np.uint32) << np.uint32(8 * byte)
    rows = np.flatnonzero(rest)
    hashes[rows] *= _M
