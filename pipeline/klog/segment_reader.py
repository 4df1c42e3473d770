"""Reading a byte range of a segment file, some megabytes at a time, while its broker may rename or replace it.

```
position   batch | batch | damage         | batch | batch | ...
                         ^ an impossible head or length     the bytes up to the next sound batch are one damage
```
Lengths lead from batch to batch. Where one cannot be right, the next batch is searched for up to the next entry of the
offset index, which is the position of a batch, or up to the end of the range. If the checksum of the batch before is
wrong, its own length may have led astray, and the search begins there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from odradek.broker.storage.names import DELETED_SUFFIX, SWAP_SUFFIX
from odradek.broker.storage.offline.batch_search import find_next_batch
from odradek.broker.storage.offline.missing_offsets import MissingOffsets, SegmentGoneError
from odradek.broker.storage.offline.segment_files import FileIdentity, file_identity
from odradek.pipeline.klog.chunks import Chunk, is_sound, part
from odradek.pipeline.klog.index_entries import LazyEntries
from odradek.pipeline.klog.offset_check import OffsetCheck
from odradek.pipeline.klog.segment_ranges import SegmentRange
from odradek.pipeline.records.damage import Damage
from odradek.pipeline.records.whole_batches import WholeBatches, whole_batches
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import LOG_OVERHEAD

CHUNK_BYTES: Final = 4_000_000  # one group of `records`
_MOST_DOUBTED: Final = 64 << 20  # bytes of a batch that are read although no batch seems to follow it
_HEAD: Final = 17  # bytes up to the magic

Found = Chunk | Damage | MissingOffsets


def read_range(range_: SegmentRange, check: OffsetCheck, buffer: bytearray) -> Iterator[Found]:
    """The batches, the damage and the gaps in the range, in order. Raises SegmentGoneError and OSError.

    `buffer` is used for one chunk after the other, because the first use of a page costs more than filling it.
    """
    with closing(_Reading(range_, buffer)) as reading:
        yield from reading.run(check)


class _Reading:
    """One range and its open file."""

    def __init__(self, range_: SegmentRange, buffer: bytearray) -> None:
        self._range = range_
        self._buffer = buffer
        self._entries = LazyEntries(range_)
        self._descriptor = _open(range_.path, range_.identity)

    def close(self) -> None:
        os.close(self._descriptor)

    def run(self, check: OffsetCheck) -> Iterator[Found]:
        range_ = self._range
        check.start(range_, self._entries, self._peek)
        position = range_.begin
        while position < range_.end:
            chunk, damage = self._read(position, check.lowest)
            if chunk is not None:
                yield from check.split(chunk)
                position += chunk.batches.size
            if damage is not None:
                yield damage
                position += damage.size
                check.skip()
        yield from check.finish()

    def _read(self, position: int, low: int) -> tuple[Chunk | None, Damage | None]:
        """Read the batches at `position`, and the damage behind them, if any."""
        end = self._range.end
        length = min(len(self._buffer), end - position)
        data = self._pread(memoryview(self._buffer)[:length], position)
        found = whole_batches(data)
        if not found.size and length < found.needed <= end - position:
            large = self._large_batch(position, found.needed)
            if large is not None:
                return Chunk(position, large), None
        behind = position + found.size
        is_followed = behind == end or end - behind >= max(found.needed, _HEAD)
        if found.flaw is None and len(data) == length and found.size and is_followed:
            return Chunk(position, found), None
        if found.size and not is_sound(found, len(found.positions) - 2):
            found = part(found, 0, len(found.positions) - 2)  # its length may be wrong
            behind = position + found.size
            reason = "the checksum of the batch is wrong, and no batch follows it"
        else:
            reason = found.flaw or ""
        chunk = Chunk(position, found._replace(flaw=None, needed=0)) if found.size else None
        if len(data) < length:  # the file is shorter than it was
            return chunk, Damage(self._range.path, behind, end - behind, None, "the file ends inside a batch")
        return chunk, self._damage(behind, low, reason)

    def _damage(self, position: int, low: int, reason: str) -> Damage:
        """Return the damage at `position`, up to the next batch."""
        range_ = self._range
        indexed = self._entries.get().position_behind(position)
        limit = range_.end if indexed is None else min(indexed, range_.end)
        found = find_next_batch(self._bytes, position + 1, limit, low, range_.limit)
        end = limit if found is None else found
        if not reason:
            reason = "the file ends inside a batch" if end == range_.end else "the length of the batch is wrong"
        return Damage(range_.path, position, end - position, None, reason)

    def _large_batch(self, position: int, size: int) -> WholeBatches | None:
        """Read the batch of so many bytes at `position`; None if its length is wrong and spans other batches."""
        behind = position + size
        indexed = self._entries.get().position_behind(position)
        if indexed is not None and indexed < behind:
            return None
        is_followed = behind == self._range.end or self._peek(behind) is not None
        if not is_followed and size > _MOST_DOUBTED:
            return None
        found = whole_batches(self._pread(memoryview(bytearray(size)), position))
        return found if found.size == size and (is_followed or is_sound(found, 0)) else None

    def _peek(self, position: int) -> WholeBatches | None:
        """The batches at `position` of the range that are in one page; None if there is not even the head of one."""
        room = self._range.end - position
        data = self._bytes(min(room, 4096), position) if room > 0 else b""
        found = whole_batches(data)
        if found.flaw is not None or not (found.size or LOG_OVERHEAD < found.needed <= room):
            return None
        return found

    def _bytes(self, length: int, position: int) -> bytes:
        return bytes(self._pread(memoryview(bytearray(length)), position))

    def _pread(self, room: memoryview, position: int) -> memoryview:
        """Fill `room` from `position` of the file; return the filled part, shorter at the end of the file."""
        try:
            return room[: os.preadv(self._descriptor, [room], position)]
        except OSError as error:
            reason = f"reading {pluralize(len(room), 'byte')} at {position} of {self._range.path}: {error.strerror}"
            raise OSError(error.errno, reason) from error


def _open(path: str, identity: FileIdentity) -> int:
    """Open the file that had this name when the range was made; it may have another name by now."""
    final = path.removesuffix(SWAP_SUFFIX)
    for name in dict.fromkeys((path, final, final + DELETED_SUFFIX)):
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if file_identity(os.fstat(descriptor)) == identity:
            return descriptor
        os.close(descriptor)
    raise SegmentGoneError(path)
