"""The last offset of every key, in a table of fixed size: what the first pass of compaction learns.

```
slot, 24 bytes:   hash of the key, 16 bytes | offset + 1, int64 (0: the slot is free)
```
Open addressing: a key goes to the slot that its hash names, or the next free one. The table is made once and takes no
more memory than it was given, however many keys come; Kafka's `SkimpyOffsetMap` has the same 24 bytes for a key.

Keys are known by their hash alone. Differs from Kafka, which takes MD5: of that anybody makes two keys with one hash,
and whoever may write a key could so let the record of another be compacted away. BLAKE2s costs 0.33 µs a key here, MD5
0.4, and the dictionary that would be quicker takes six times the memory (`benchmarks/cleaner.py`).
"""

from __future__ import annotations

import struct
from hashlib import blake2s

_HASH_BYTES = 16
_SLOT = struct.Struct(f"={_HASH_BYTES}sq")


class KeyOffsets:
    """The table, empty at first. `latest_offset` is how far the log was looked at (inclusive), -1 at first."""

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        self.slots = max(memory_bytes // _SLOT.size, 1)
        self.capacity = int(self.slots * load_factor)
        self.size = 0
        self.latest_offset = -1
        self._table = bytearray(self.slots * _SLOT.size)

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    @property
    def utilization(self) -> float:
        """The share of the slots that are taken."""
        return self.size / self.slots

    def put(self, key: bytes, offset: int) -> None:
        """Note that `offset` is the last one of `key` so far. Not to be called when the table is full."""
        digest = blake2s(key, digest_size=_HASH_BYTES).digest()
        position, known = self._find(digest)
        _SLOT.pack_into(self._table, position, digest, offset + 1)
        self.latest_offset = offset
        if not known:
            self.size += 1

    def get(self, key: bytes) -> int:
        """The last offset of `key`, or -1."""
        return self._find(blake2s(key, digest_size=_HASH_BYTES).digest())[1] - 1

    def _find(self, digest: bytes) -> tuple[int, int]:
        """Where the slot of a key begins, and what is in it; 0 if the slot is free and would become the key's."""
        table, size, unpack = self._table, _SLOT.size, _SLOT.unpack_from
        position = hash(digest) % self.slots * size
        while True:
            found, offset = unpack(table, position)
            if found == digest or not offset:
                return position, offset
            position += size
            if position == len(table):
                position = 0
