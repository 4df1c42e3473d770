"""The result of the first pass of compaction: the last offset of every key, in a table of fixed size.

```
slot, 24 bytes:   hash of the key, 16 bytes | offset + 1, int64 (0: the slot is free)
```
Open addressing: a key goes to the slot of its hash, or to the next free one. The table never grows, however many keys
there are; Kafka's `SkimpyOffsetMap` has the same 24 bytes for a key.

Only the hash identifies a key. Differs from Kafka, which uses MD5: anyone can make two keys with the same MD5, and so
get another key's record compacted away. BLAKE2s takes 0.33 µs for a key here, MD5 0.4. A dictionary would be faster,
and take six times the memory.
"""

from __future__ import annotations

import struct
from hashlib import blake2s

_HASH_BYTES = 16
_SLOT = struct.Struct(f"={_HASH_BYTES}sq")


class KeyOffsets:
    """The table, empty at first. The caller sets `latest_offset` (inclusive): the log was read up to there."""

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        self.slots = max(memory_bytes // _SLOT.size, 2)
        # One slot stays free, so that searches for missing keys end; at least one key fits, so that rounds end.
        self.capacity = min(max(int(self.slots * load_factor), 1), self.slots - 1)
        self.size = 0
        self.latest_offset = -1
        self._table = bytearray(self.slots * _SLOT.size)

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    @property
    def utilization(self) -> float:
        """The share of the slots in use."""
        return self.size / self.slots

    # The search is written twice, because it runs for every record of the log: a method would cost a fifth more.
    def put(self, key: bytes, offset: int) -> int:
        """Set the last offset of `key`, and return the one before it, or -1.

        Must not be called when the table is full.
        """
        digest = blake2s(key, digest_size=_HASH_BYTES).digest()
        table, size, unpack = self._table, _SLOT.size, _SLOT.unpack_from
        position = hash(digest) % self.slots * size
        while True:
            found, known = unpack(table, position)
            if found == digest or not known:
                break
            position += size
            if position == len(table):
                position = 0
        _SLOT.pack_into(table, position, digest, offset + 1)
        if not known:
            self.size += 1
        return int(known) - 1

    def get(self, key: bytes) -> int:
        """The last offset of `key`, or -1."""
        digest = blake2s(key, digest_size=_HASH_BYTES).digest()
        table, size, unpack = self._table, _SLOT.size, _SLOT.unpack_from
        position = hash(digest) % self.slots * size
        while True:
            found, known = unpack(table, position)
            if found == digest or not known:
                return int(known) - 1
            position += size
            if position == len(table):
                position = 0
