"""A `.log` file, read through a window, and the positions of the batches in it.

```
 0 offset   int64   of the first record (magic 2) or of the message (magic 0 and 1)
 8 size     int32   bytes after this field
16 magic    int8    the format of the rest; the same place in every format
```
These fields are enough to find the next batch. The walk ends before a batch that is cut off by the end, and before a
last batch of exactly 17 bytes, which is impossible. Source: Kafka `FileLogInputStream`, `FileRecords`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self

from odradek.broker.inspection.dump.complaints import DumpError
from odradek.broker.inspection.dump.java import INT32_MAX
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import LOG_OVERHEAD
from odradek.protocol.records.message_set import MIN_LENGTHS

_HEADER_UP_TO_MAGIC: Final = struct.Struct(">qi4xb")
_SMALLEST_SIZE: Final = MIN_LENGTHS[0]
_WINDOW: Final = 1 << 20  # bytes read at a time


class Batch(NamedTuple):
    """A batch or message: its position in the file, its first offset as written, its size and its magic."""

    position: int
    offset: int
    size: int
    magic: int


class LogFile:
    """An open segment. Its memory is one window, or the largest batch that was read if that is larger."""

    def __init__(self, path: str) -> None:
        """Raises OSError, and DumpError for a file that is larger than a segment can be."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        self._window = b""
        self._window_position = 0
        self.size = os.fstat(self._descriptor).st_size
        if self.size > INT32_MAX:
            self.close()
            raise DumpError(f"{path} has {pluralize(self.size, 'byte')}; a segment has at most {INT32_MAX}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, position: int, size: int) -> memoryview:
        """Return `size` bytes from `position`, which the file must have; raises DumpError."""
        start = position - self._window_position
        if start < 0 or start + size > len(self._window):
            self._window = os.pread(self._descriptor, max(size, _WINDOW), position)
            self._window_position = position
            start = 0
            if size > len(self._window):
                raise DumpError(f"{self.path} ends inside the {pluralize(size, 'byte')} at {position}")
        return memoryview(self._window)[start : start + size]

    def batches(self, position: int, end: int) -> Iterator[Batch]:
        """Yield the batches from `position` on that are whole before `end`.

        Raises DumpError for an impossible size.
        """
        while position < end - _HEADER_UP_TO_MAGIC.size:
            offset, size, magic = _HEADER_UP_TO_MAGIC.unpack(self.read(position, _HEADER_UP_TO_MAGIC.size))
            if size < _SMALLEST_SIZE:
                raise DumpError(
                    f"{self.path} at {position}: a batch of size {size}, where {_SMALLEST_SIZE} is the smallest"
                )
            if position + LOG_OVERHEAD + size > end:
                return
            yield Batch(position, offset, LOG_OVERHEAD + size, magic)
            position += LOG_OVERHEAD + size

    def slice_end(self, position: int, size: int) -> int:
        """Return the end (exclusive) of `size` bytes from `position`, at most that of the file; raises DumpError."""
        if position < 0 or size < 0 or position > self.size:
            raise DumpError(f"{pluralize(size, 'byte')} from {position} of {self.path}, which has {self.size}")
        return min(position + size, self.size)
