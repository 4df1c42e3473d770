"""The time index of a segment (`.timeindex`): the offset where a search for records of a time begins.

```
entry, 12 bytes, big-endian:  timestamp i64         the largest timestamp in the segment so far
                              relative offset i32   last offset of the (first) batch with it, minus the base offset
```

`(T, o)` means: every record of the segment with a timestamp above T has an offset above o. An entry is due whenever the
offset index gets one, and is added only if the timestamp grew. One more is added when the segment is rolled or cleanly
closed, so the last entry of a finished segment has its largest timestamp. A slot is reserved for that entry. Timestamps
of records need not ascend; those of entries do, and so do their offsets. `index_file` describes the file.
"""

from __future__ import annotations

import struct
from typing import ClassVar, NamedTuple

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.index.index_file import CorruptIndexError, IndexFile
from odradek.protocol.records.batch_header import NO_TIMESTAMP

_ENTRY = struct.Struct(">qi")
_TIMESTAMP = struct.Struct(">q")
_OFFSET = struct.Struct(">i")


class TimestampOffset(NamedTuple):
    """A timestamp and the last offset of the batch with it; `(-1, base offset)` if there is none."""

    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """Timestamp → offset of one segment."""

    entry_size: ClassVar[int] = 12

    def __init__(
        self, path: str, base_offset: int, descriptors: DescriptorCache, max_bytes: int, file_size: int | None
    ) -> None:
        super().__init__(path, base_offset, descriptors, max_bytes, file_size)
        self._last: TimestampOffset | None = None  # as read or appended; None before the first use and after a change

    @property
    def is_full(self) -> bool:
        return self.count >= self.capacity - 1

    def check(self) -> None:
        """Raise `CorruptIndexError` if the ends of the index contradict each other."""
        self.check_size()
        if self.count:
            first, last = self.entry(0), self.entry(self.count - 1)
            ascending = self.count == 1 or (last.timestamp > first.timestamp and last.offset > first.offset)
            if not ascending or first.timestamp < 0 or first.offset < self.base_offset:
                raise CorruptIndexError(f"{self.path} goes from {first} to {last}")

    def entry(self, slot: int) -> TimestampOffset:
        return self._decode(self.read_entry(slot))

    def _decode(self, entry: bytes) -> TimestampOffset:
        timestamp, relative_offset = _ENTRY.unpack(entry)
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    def last(self) -> TimestampOffset:
        """The last entry, which holds the largest timestamp of a finished segment."""
        last = self._last
        if last is None:
            last = self.entry(self.count - 1) if self.count else TimestampOffset(NO_TIMESTAMP, self.base_offset)
            self._last = last
        return last

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry whose timestamp is at most `timestamp`; `(-1, base offset)` if there is none."""
        slot, entry = self.floor_entry(timestamp, _TIMESTAMP)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot < 0 else self._decode(entry)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add `(timestamp, offset)` if the timestamp is above that of the last entry."""
        if timestamp > self.last().timestamp:
            self.append_entry(_ENTRY.pack(timestamp, offset - self.base_offset))
            self._last = TimestampOffset(timestamp, offset)

    def missing_entry(self, timestamp: int, offset: int) -> bytes:
        """The bytes of the entry that `maybe_append` would add; empty if it would add none."""
        return _ENTRY.pack(timestamp, offset - self.base_offset) if timestamp > self.last().timestamp else b""

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of batches that hold `offset` or later offsets."""
        self.keep_entries(self.floor_slot(offset - 1 - self.base_offset, _OFFSET, _TIMESTAMP.size) + 1)
        self._last = None

    def reset(self) -> None:
        super().reset()
        self._last = None
