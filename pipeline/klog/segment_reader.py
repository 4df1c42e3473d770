"""Reading a byte range of a segment file, some megabytes at a time, while its broker may rename or replace it.

Where a head cannot be that of a batch, reading continues at the next entry of the offset index; the bytes between are
one damage.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.names import DELETED_SUFFIX, SWAP_SUFFIX
from odradek.broker.storage.offline.live_log import FileIdentity, file_identity, read_offset_index
from odradek.pipeline.klog.segment_ranges import SegmentRange
from odradek.pipeline.records.damage import Damage
from odradek.pipeline.records.whole_batches import WholeBatches, whole_batches
from odradek.protocol.plural import pluralize

CHUNK_BYTES: Final = 4_000_000  # one group of `records`


class Chunk(NamedTuple):
    """Whole batches at `position` of the file.

    Their memory is reused for the next chunk: they are valid until that is requested.
    """

    position: int
    batches: WholeBatches


class SegmentGoneError(Exception):
    """A segment was removed, or replaced by compaction, after the read was planned."""


def read_range(range_: SegmentRange) -> Iterator[Chunk | Damage]:
    """The batches and the damage in the range, in order. Raises SegmentGoneError and OSError."""
    descriptor = _open(range_.path, range_.identity)
    try:
        position = range_.begin
        # One buffer for all chunks: the first use of a page costs more than filling it.
        buffer = bytearray(min(CHUNK_BYTES, range_.end - position))
        while position < range_.end:
            chunk, damage = _read(descriptor, range_, position, buffer)
            if chunk is not None:
                yield chunk
                position += chunk.batches.size
            if damage is not None:
                yield damage
                position += damage.size
    finally:
        os.close(descriptor)


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
    raise SegmentGoneError(
        f"{path} was removed by retention or replaced by compaction after this read was planned: read again"
    )


def _read(
    descriptor: int, range_: SegmentRange, position: int, buffer: bytearray
) -> tuple[Chunk | None, Damage | None]:
    """Read the batches at `position`, and the damage behind them, if any."""
    length = min(len(buffer), range_.end - position)
    data = _pread(descriptor, memoryview(buffer)[:length], position)
    found = whole_batches(data)
    if not found.size and found.needed and length < found.needed <= range_.end - position:
        data = _pread(descriptor, memoryview(bytearray(found.needed)), position)
        found = whole_batches(data)
    chunk = Chunk(position, found._replace(flaw=None)) if found.size else None
    behind = position + found.size
    if found.flaw is not None:
        end = _next_entry(range_, behind)
        return chunk, Damage(range_.path, behind, end - behind, None, found.flaw)
    if chunk is None or len(data) < length:  # not even one batch fits, or the file is shorter than it was
        size = range_.end - behind
        return chunk, Damage(range_.path, behind, size, None, "the file ends inside a batch")
    return chunk, None


def _pread(descriptor: int, room: memoryview, position: int) -> memoryview:
    """Fill `room` from `position` of the file; return the filled part, shorter at the end of the file."""
    try:
        return room[: os.preadv(descriptor, [room], position)]
    except OSError as error:
        raise OSError(
            error.errno or errno.EIO, f"reading {pluralize(len(room), 'byte')} at {position}: {error.strerror}"
        ) from error


def _next_entry(range_: SegmentRange, position: int) -> int:
    """The position of the next batch in the offset index, or the end of the range."""
    try:
        index = read_offset_index(range_.path)
        index.check(range_.end)
        entry = index.first_at_position(position + 1)
    except (CorruptIndexError, OSError):
        return range_.end
    return range_.end if entry is None else min(entry.position, range_.end)
