"""A file of fixed-size entries, ascending, searched on the disk: the offset index and the time index.

```
+---------+---------+-----+-------------+------------------+
| entry 0 | entry 1 | ... | entry n - 1 | zeros, no blocks |
+---------+---------+-----+-------------+------------------+
0                                       n * entry size     file size: `segment.index.bytes` while the segment is active,
                                                           cut to n * entry size when it is rolled or cleanly closed
```

An index can always be rebuilt from the log. An append never syncs it, and an index that contradicts itself or its log
raises `CorruptIndexError`; the segment then rebuilds it. Kafka has not checked that since 4.0, and would use a wrong
position.

An index of a finished segment with at most 64 KiB is read as a whole at its first search. In a larger or growing one a
search narrows down to one block of entries with a few small reads, and reads that block. The whole or the last four
blocks stay in memory while the file is open: a consumer that reads on finds most of its offsets there. One thread
writes; readers beside it use `count`, which rises after the entry is written. When entries are dropped, `count` falls
first and then `edition` is replaced, which invalidates the blocks in memory.
"""

from __future__ import annotations

import struct
from typing import ClassVar

from odradek.broker.storage.disk.descriptors import Block, DescriptorCache
from odradek.protocol.plural import pluralize

_BLOCK_BYTES = 8192  # two pages; two more steps of a search would cost more than the second page
_WHOLE_BYTES = 64 * 1024  # 4,166 batches of 16 KiB in 64 MiB are 33 and 50 KiB; of 2,048 open files at most 128 MiB
_BLOCKS = 4  # in memory of each open file: for consumers at different places of a segment


class CorruptIndexError(Exception):
    """An index contradicts itself or its log."""


class IndexFile:
    """A file of entries of `entry_size` bytes. `file_size` is that of the directory entry, None if there is no file."""

    entry_size: ClassVar[int]

    def __init__(
        self, path: str, base_offset: int, descriptors: DescriptorCache, max_bytes: int, file_size: int | None
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self.exists = file_size is not None
        self.count = (file_size or 0) // self.entry_size
        self._file_size = file_size or 0
        self._max_bytes = max_bytes // self.entry_size * self.entry_size
        self._descriptors = descriptors
        self._edition = object()

    @property
    def size(self) -> int:
        """The bytes that hold entries."""
        return self.count * self.entry_size

    @property
    def capacity(self) -> int:
        """The number of entries that fit before the segment must roll."""
        return self._max_bytes // self.entry_size

    def create(self) -> None:
        """Create the file, empty and with room for all entries."""
        self._descriptors.create(self.path)
        self.exists = True
        self.count = 0
        self._resize(self._max_bytes)

    def reset(self) -> None:
        """Drop every entry and make room for new ones, whatever the file holds; a missing file is created."""
        if not self.exists:
            self.create()
            return
        self.count = 0
        self._edition = object()
        self._resize(0)  # old bytes must not reappear behind fewer entries
        self._resize(self._max_bytes)

    def trim(self) -> None:
        """Cut the file to its entries; no entry follows."""
        if self._file_size != self.size:
            self._resize(self.size)

    def flush(self) -> None:
        with self._descriptors.pinned(self.path) as number:
            self._descriptors.files.fsync(number)

    def check_size(self) -> None:
        """Raise `CorruptIndexError` unless the file exists and holds whole entries only."""
        if not self.exists:
            raise CorruptIndexError(f"{self.path} is missing")
        if self._file_size % self.entry_size:
            raise CorruptIndexError(
                f"{self.path} has {pluralize(self._file_size, 'byte')}, no multiple of {self.entry_size}"
            )

    def read_entry(self, slot: int) -> bytes:
        return self._read(slot, 1)

    def append_entry(self, entry: bytes) -> None:
        position = self.size
        if position >= self._file_size:  # trimmed by a clean stop, and now appended to again
            self._resize(max(self._max_bytes, position + self.entry_size))
        descriptor = self._descriptors.pin(self.path)
        try:
            self._descriptors.files.pwrite(descriptor.number, entry, position)
        finally:
            self._descriptors.unpin(descriptor)
        self.count += 1

    def keep_entries(self, count: int) -> None:
        """Drop all entries from slot `count` on, and overwrite them with zeros."""
        if count < self.count:
            self.count = count
            self._edition = object()
            self._resize(self.size)
            self._resize(self._max_bytes)

    def floor_slot(self, target: int, key: struct.Struct, at: int = 0) -> int:
        """The last slot whose key is at most `target`, or -1; `key` is unpacked `at` bytes into each entry."""
        return self.floor_entry(target, key, at)[0]

    def floor_entry(self, target: int, key: struct.Struct, at: int = 0) -> tuple[int, bytes]:
        """The same slot and its entry, or -1 and no bytes."""
        edition = self._edition  # before `count`, which falls before another edition begins
        count = self.count
        if not count:
            return -1, b""
        size, unpack = self.entry_size, key.unpack_from
        descriptor = self._descriptors.pin(self.path)
        try:
            for block in descriptor.blocks:
                if block.edition is edition and self._has_floor(block, count, target, key, at):
                    break
            else:
                start, data = self._read_block(descriptor.number, count, target, key, at)
                block = Block(edition, start, data)
                kept = () if len(data) == count * size else descriptor.blocks[: _BLOCKS - 1]
                descriptor.blocks = (block, *kept)
        finally:
            self._descriptors.unpin(descriptor)
        _, start, data = block
        low, high = 0, min(len(data) // size, count - start)  # the first entry with a greater key is in [low, high]
        while low < high:
            middle = (low + high) // 2
            if unpack(data, middle * size + at)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return start + low - 1, data[(low - 1) * size : low * size] if low else b""

    def _has_floor(self, block: Block, count: int, target: int, key: struct.Struct, at: int) -> bool:
        """Whether the last of `count` entries with a key of at most `target` is in the block, or none is."""
        _, start, data = block
        if start >= count or (start and key.unpack_from(data, at)[0] > target):
            return False
        end = start + len(data) // self.entry_size
        return end >= count or key.unpack_from(data, len(data) - self.entry_size + at)[0] > target

    def _read_block(self, number: int, count: int, target: int, key: struct.Struct, at: int) -> tuple[int, bytes]:
        """Read the block with the last of `count` entries whose key is at most `target`; return its first slot, too."""
        low, high = 0, count
        size, pread = self.entry_size, self._descriptors.files.pread
        if self._file_size == count * size <= _WHOLE_BYTES:
            return 0, self._whole(pread(number, count * size, 0), 0, count)
        while high - low > _BLOCK_BYTES // size:
            middle = (low + high) // 2
            entry = self._whole(pread(number, size, middle * size), middle, 1)
            if key.unpack_from(entry, at)[0] <= target:
                low = middle
            else:
                high = middle
        high = min(low + _BLOCK_BYTES // size, count)  # the next look-ups of a consumer are behind
        return low, self._whole(pread(number, (high - low) * size, low * size), low, high - low)

    def _read(self, slot: int, count: int) -> bytes:
        with self._descriptors.pinned(self.path) as number:
            data = self._descriptors.files.pread(number, count * self.entry_size, slot * self.entry_size)
        return self._whole(data, slot, count)

    def _whole(self, data: bytes, slot: int, count: int) -> bytes:
        if len(data) != count * self.entry_size:
            raise CorruptIndexError(f"{self.path} ends before its entry {slot + count - 1}")
        return data

    def _resize(self, size: int) -> None:
        with self._descriptors.pinned(self.path) as number:
            self._descriptors.files.truncate(number, size)
        self._file_size = size
