"""The offset index of a segment (`.index`): the place in the log where a search for an offset begins.

```
entry, 8 bytes, big-endian:   relative offset i32   the last offset of a batch, minus the segment's base offset
                              position i32          where in the .log file that batch starts
```

Sparse: a batch gets an entry once more than `index.interval.bytes` were written since the batch of the previous entry,
so a look-up reads at most about that much of the log. Both fields ascend strictly. `index_file` describes the file.
"""

from __future__ import annotations

import struct
from typing import ClassVar, NamedTuple

from odradek.broker.storage.index.index_file import CorruptIndexError, IndexFile
from odradek.protocol.plural import pluralize

_ENTRY = struct.Struct(">ii")
_OFFSET = struct.Struct(">i")
_POSITION = struct.Struct(">i")


class OffsetPosition(NamedTuple):
    """A batch's last offset, and its position; `(base offset, 0)` stands for the start of the segment."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """Offset → position of one segment."""

    entry_size: ClassVar[int] = 8

    @property
    def is_full(self) -> bool:
        return self.count >= self.capacity

    def check(self, log_size: int) -> None:
        """Raise `CorruptIndexError` if the ends of the index do not fit a log of `log_size` bytes."""
        self.check_size()
        if self.count:
            first, last = self.entry(0), self.entry(self.count - 1)
            ascending = self.count == 1 or (last.offset > first.offset and last.position > first.position)
            if not ascending or first.offset < self.base_offset or not 0 <= last.position < log_size:
                raise CorruptIndexError(
                    f"{self.path} goes from {first} to {last} in a log of {pluralize(log_size, 'byte')}"
                )

    def entry(self, slot: int) -> OffsetPosition:
        return self._decode(self.read_entry(slot))

    def _decode(self, entry: bytes) -> OffsetPosition:
        relative_offset, position = _ENTRY.unpack(entry)
        return OffsetPosition(self.base_offset + relative_offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry whose offset is at most `offset`; the start of the segment if there is none."""
        slot, entry = self.floor_entry(offset - self.base_offset, _OFFSET)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self._decode(entry)

    def first_at_position(self, position: int) -> OffsetPosition | None:
        """The first entry whose batch starts at `position` or behind it; None if there is none."""
        slot = self.floor_slot(position - 1, _POSITION, _OFFSET.size) + 1
        return self.entry(slot) if slot < self.count else None

    def last(self) -> OffsetPosition:
        return self.entry(self.count - 1) if self.count else OffsetPosition(self.base_offset, 0)

    def append(self, offset: int, position: int) -> None:
        """Add the batch that starts at `position` and ends with `offset`, both beyond those of the last entry."""
        self.append_entry(_ENTRY.pack(offset - self.base_offset, position))

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of batches that hold `offset` or later offsets."""
        self.keep_entries(self.floor_slot(offset - 1 - self.base_offset, _OFFSET) + 1)
