"""The transaction index of a segment (`.txnindex`): the transactions whose abort markers are in the segment.

```
entry, 34 bytes, big-endian:  version i16             0
                              producer id i64
                              first offset i64        of the transaction's first record, possibly in an earlier segment
                              last offset i64         of the abort marker
                              last stable offset i64  of the log when the marker was written
```

Entries ascend by last offset. The file exists only in segments with aborted transactions, is small, and is read whole.
`read_committed` readers get the aborted transactions that overlap what they fetch, and skip their records by producer
id, from the first offset to the marker. A search that starts in one segment goes on in the next ones until an entry's
last stable offset reaches the end of the range: no later entry can have begun before it.

An entry is added when its marker is already in the log, so a transient error does not fail the append: the entry stays
in memory, and is written with the next one or by `flush`, before the marker counts as synced.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import NamedTuple

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_errors import is_transient
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.protocol.plural import pluralize

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """An aborted transaction; all offsets are inclusive but the last stable offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment; `file_size` is None if there is no file."""

    def __init__(self, path: str, base_offset: int, descriptors: DescriptorCache, file_size: int | None) -> None:
        self.path = path
        self.base_offset = base_offset
        self.exists = file_size is not None
        self._size = file_size or 0
        self._unwritten: list[AbortedTransaction] = []
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
        for version, *fields in _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]):
            if version != _VERSION:
                raise CorruptIndexError(f"{self.path} has an entry of version {version}")
            yield AbortedTransaction(*fields)

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
                self._descriptors.files.remove(self.path)  # a file that exists is left from before a crash
                self._descriptors.create(self.path)
                self.exists = True
            with self._descriptors.pinned(self.path) as number:
                while self._unwritten:
                    entry = _ENTRY.pack(_VERSION, *self._unwritten[0])
                    self._descriptors.files.pwrite(number, entry, self._size)
                    self._size += _ENTRY.size
                    del self._unwritten[0]

    def overlapping(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """The transactions with offsets in [start_offset, end_offset), and whether later segments have no more."""
        found = []
        for entry in self.entries():
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the entries with markers at `offset` or later."""
        self._unwritten = [entry for entry in self._unwritten if entry.last_offset < offset]
        kept = (
            sum(1 for entry in self._stored_entries() if entry.last_offset < offset) * _ENTRY.size if self._size else 0
        )
        if kept < self._size:
            self._truncate(kept)

    def reset(self) -> None:
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
        found += [(entry.producer_id, entry.first_offset) for entry in aborted]
        if is_complete:
            break
    return found
