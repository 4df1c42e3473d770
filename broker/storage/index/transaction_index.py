"""The transaction index of a segment (`.txnindex`): the transactions whose abort markers are in the segment.

```
entry, 34 bytes, big-endian:  version i16             0
                              producer id i64
                              first offset i64        of the transaction's first record, possibly in an earlier segment
                              last offset i64         of the abort marker
                              last stable offset i64  of the log when the marker was written
```

Entries ascend by last offset. The file exists only in segments with aborted transactions. `read_committed` readers get
the aborted transactions that overlap what they fetch, and skip their records by producer id, from the first offset to
the marker. A search that starts in one segment goes on in the next ones until an entry's last stable offset reaches the
end of the range: no later entry can have begun before it.

A search bisects to its first entry and reads blocks of entries from there. While a long transaction was open, the last
stable offset stood still, so that a search must look at every entry up to that transaction's end. It omits the blocks
that were read before and have no transaction that began early enough.

An entry is added when its marker is already in the log, so a transient error does not fail the append: the entry stays
in memory, and is written with the next one or by `flush`, before the marker counts as synced.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import itemgetter
from threading import Lock
from typing import Final, NamedTuple

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_errors import is_transient
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.protocol.plural import pluralize

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_LAST_OFFSET = struct.Struct(">q")
_LAST_OFFSET_POSITION: Final = 18

_Row = tuple[int, ...]
"""An unpacked entry; the number of its last stable offset is `_STABLE`."""
_STABLE: Final = 4
_STABLE_OF: Final = itemgetter(_STABLE)

BLOCK: Final = 256
"""Entries that a search reads at once; they take 50 µs."""
_FIRST_READ: Final = 32
"""Entries that it reads first: mostly enough for what a Fetch returns."""


class AbortedTransaction(NamedTuple):
    """An aborted transaction; all offsets are inclusive but the last stable offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class _Block(NamedTuple):
    """A full block of entries: the smallest first offset and the largest last stable offset."""

    first_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment; `file_size` is None if there is no file."""

    def __init__(self, path: str, base_offset: int, descriptors: DescriptorCache, file_size: int | None) -> None:
        self.path = path
        self.base_offset = base_offset
        self.exists = file_size is not None
        self._size = file_size or 0
        self._unwritten: list[AbortedTransaction] = []
        self._blocks: dict[int, _Block] = {}  # those that a search has read, by number
        self._descriptors = descriptors
        self._lock = Lock()  # the appender and a flush both write unwritten entries

    @property
    def size(self) -> int:
        """The bytes of all entries, also of those not yet written."""
        return self._size + len(self._unwritten) * _ENTRY.size

    def check(self) -> None:
        """Raise `CorruptIndexError` if an entry does not fit this segment."""
        if self._size % _ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {pluralize(self._size, 'byte')}, no multiple of {_ENTRY.size}")
        previous = self.base_offset - 1
        for entry in self.entries():
            if entry.last_offset <= previous or entry.first_offset > entry.last_offset:
                raise CorruptIndexError(f"{self.path} has {entry} after offset {previous}")
            previous = entry.last_offset

    def entries(self) -> Iterator[AbortedTransaction]:
        """All entries. Raises `CorruptIndexError` at one of an unknown version."""
        unwritten = tuple(self._unwritten)  # first: an entry written meanwhile is yielded twice instead of never
        if self._size:
            yield from self._stored_entries()
        yield from unwritten

    def _stored_entries(self) -> Iterator[AbortedTransaction]:
        with self._descriptors.pinned(self.path) as number:
            data = self._descriptors.files.pread(number, self._size, 0)
        for _, *fields in self._rows(data):
            yield AbortedTransaction(*fields)

    def _rows(self, data: bytes) -> list[_Row]:
        rows = list(_ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]))
        for row in rows:
            if row[0] != _VERSION:
                raise CorruptIndexError(f"{self.path} has an entry of version {row[0]}")
        return rows

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction whose marker is behind those of all entries."""
        self._unwritten.append(aborted)
        try:
            self._write()
        except OSError as error:
            if not is_transient(error):
                raise

    def _write(self) -> None:
        with self._lock:
            if not self._unwritten:
                return
            if not self.exists:
                self._descriptors.create(self.path)
                self.exists = True
            with self._descriptors.pinned(self.path) as number:
                while self._unwritten:
                    entry = _ENTRY.pack(_VERSION, *self._unwritten[0])
                    self._descriptors.files.pwrite(number, entry, self._size)
                    self._size += _ENTRY.size
                    del self._unwritten[0]

    def overlapping(self, start_offset: int, end_offset: int) -> tuple[list[tuple[int, int]], bool]:
        """Producer id and first offset of the transactions with offsets in [start_offset, end_offset).

        The second value is whether later segments have no more. Raises `CorruptIndexError` as `entries`.
        """
        unwritten = tuple(self._unwritten)  # first, as in `entries`
        found: list[tuple[int, int]] = []
        if self._size and self._find_stored(start_offset, end_offset, found):
            return found, True
        for entry in unwritten:
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def _find_stored(self, start_offset: int, end_offset: int, found: list[tuple[int, int]]) -> bool:
        """Add the stored transactions that overlap to `found`; return whether later entries are of no interest."""
        blocks = self._blocks  # a truncation meanwhile replaces it
        count = self._size // _ENTRY.size
        with self._descriptors.pinned(self.path) as number:
            begin = self._first_ending_at(start_offset, count, number)
            size = _FIRST_READ
            while begin < count:
                is_block = begin % BLOCK == 0 and size == BLOCK
                end = min(begin + size, (begin // BLOCK + 1) * BLOCK, count)
                known = blocks.get(begin // BLOCK) if is_block else None
                if known is None or known.first_offset < end_offset or known.last_stable_offset >= end_offset:
                    rows = self._read_rows(number, begin, end)
                    if rows and rows[-1][_STABLE] >= end_offset:
                        last = bisect_left(rows, end_offset, key=_STABLE_OF)
                        found += [(row[1], row[2]) for row in rows[: last + 1] if row[2] < end_offset]
                        return True
                    found += [(row[1], row[2]) for row in rows if row[2] < end_offset]
                    if is_block and len(rows) == BLOCK:
                        blocks[begin // BLOCK] = _Block(min([row[2] for row in rows]), rows[-1][_STABLE])
                begin = end
                size = BLOCK
        return False

    def _first_ending_at(self, offset: int, count: int, number: int) -> int:
        """The number of the first of `count` stored entries whose marker is at `offset` or later."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            position = middle * _ENTRY.size + _LAST_OFFSET_POSITION
            data = self._descriptors.files.pread(number, _LAST_OFFSET.size, position)
            # A short read: another process has truncated the file.
            if len(data) == _LAST_OFFSET.size and _LAST_OFFSET.unpack(data)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read_rows(self, number: int, begin: int, end: int) -> list[_Row]:
        return self._rows(self._descriptors.files.pread(number, (end - begin) * _ENTRY.size, begin * _ENTRY.size))

    def truncate_to(self, offset: int) -> None:
        """Drop the entries with markers at `offset` or later."""
        self._blocks = {}
        self._unwritten = [entry for entry in self._unwritten if entry.last_offset < offset]
        kept = (
            sum(1 for entry in self._stored_entries() if entry.last_offset < offset) * _ENTRY.size if self._size else 0
        )
        if kept < self._size:
            self._truncate(kept)

    def reset(self) -> None:
        self._blocks = {}
        self._unwritten = []
        if self._size:
            self._truncate(0)

    def flush(self) -> None:
        self._write()
        if self.exists:
            with self._descriptors.pinned(self.path) as number:
                self._descriptors.files.fsync(number)

    def _truncate(self, size: int) -> None:
        with self._descriptors.pinned(self.path) as number:
            self._descriptors.files.truncate(number, size)
        self._size = size


def aborted_transactions(
    indexes: Iterable[TransactionIndex], start_offset: int, end_offset: int
) -> list[tuple[int, int]]:
    """Producer id and first offset of the aborted transactions with offsets in [start_offset, end_offset).

    `indexes` are those of the segment that holds `start_offset` and of all later ones, in order; empty ones may be
    omitted.
    """
    found: list[tuple[int, int]] = []
    for index in indexes:
        aborted, is_complete = index.overlapping(start_offset, end_offset)
        found += aborted
        if is_complete:
            break
    return found
