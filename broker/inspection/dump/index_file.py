"""The entries of an index file, and Kafka's search in them; for the offset index and the time index.

A file is a sequence of entries of one size without a header; bytes behind the last whole one are ignored. Offsets are
relative to the base offset in the file's name. Source: Kafka `AbstractIndex`.
"""

from __future__ import annotations

import struct
from pathlib import Path

from odradek.broker.inspection.dump.java import int64, parse_long

_WARM_BYTES = 8192  # at the end of an index; Kafka searches there first


class IndexFile:
    """The entries of an index as pairs of the integers in `form`. Raises OSError, and DumpError for a wrong name."""

    def __init__(self, path: str, form: struct.Struct) -> None:
        self.path = path
        self.base_offset = base_offset_of(path)
        data = Path(path).read_bytes()
        self.size = len(data)
        self._form = form
        self._data = data
        self.entries = len(data) // form.size

    def entry(self, number: int) -> tuple[int, int]:
        first, second = self._form.unpack_from(self._data, number * self._form.size)
        return first, second

    def absolute(self, relative_offset: int) -> int:
        return int64(self.base_offset + relative_offset)

    def lower_bound(self, offset: int) -> int:
        """Return the entry with the largest offset up to `offset` in its first column, or -1.

        The search takes Kafka's steps, so that it ends at the same entry in an index that is out of order.
        """
        if self.entries == 0:
            return -1
        first_warm = max(0, self.entries - 1 - _WARM_BYTES // self._form.size)
        if self.absolute(self.entry(first_warm)[0]) < offset:
            return self._search(offset, first_warm, self.entries - 1)
        if self.absolute(self.entry(0)[0]) > offset:
            return -1
        return self._search(offset, 0, first_warm)

    def _search(self, offset: int, low: int, high: int) -> int:
        while low < high:
            middle = (low + high + 1) // 2
            found = self.absolute(self.entry(middle)[0])
            if found > offset:
                high = middle - 1
            elif found < offset:
                low = middle
            else:
                return middle
        return low


def base_offset_of(path: str) -> int:
    """The offset in a file's name. Raises DumpError for another name."""
    return parse_long(path.rpartition("/")[2].partition(".")[0])


def beside(path: str, suffix: str) -> str:
    """Return the path of the segment's file with another suffix."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}{name.partition('.')[0]}{suffix}"
