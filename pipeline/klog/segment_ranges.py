"""The byte ranges of files that hold a range of offsets, in pieces for tasks.

The offset index gives the first and the last batch of the range, so nothing before and behind them is read. A range
longer than the aim is cut at index entries, which are positions of batches.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.offline.live_log import FileIdentity, LiveLog, file_identity
from odradek.broker.storage.segment import Segment


class SegmentRange(NamedTuple):
    """Bytes [begin, end) of a segment's file `path`: whole batches."""

    path: str
    identity: FileIdentity
    begin: int
    end: int


def segment_ranges(log: LiveLog, start_offset: int, end_offset: int, aim: int) -> Iterator[SegmentRange]:
    """The bytes with the records of [start_offset, end_offset), in pieces of about `aim` bytes.

    Raises FileNotFoundError for a segment that is gone by now, or whose file was replaced.
    """
    if start_offset >= end_offset:
        return
    for segment in log.segments.from_offset(start_offset):
        if segment.base_offset >= end_offset:
            return
        begin, end = _begin(segment, start_offset), _end(log, segment, end_offset)
        if begin < end:
            path, identity = segment.log.path, log.identities[segment.base_offset]
            pieces = list(_pieces(segment, begin, end, aim))
            # A swap renames the log before its indexes: while the log is the same file, the indexes belong to it.
            if file_identity(Path(path).stat()) != identity:
                raise FileNotFoundError(errno.ENOENT, "compaction has just put another file there", path)
            for first, last in pieces:
                yield SegmentRange(path, identity, first, last)


def _begin(segment: Segment, offset: int) -> int:
    if offset <= segment.base_offset:
        return 0
    try:
        found = segment.locate(offset)
    except CorruptBatchError:
        return 0  # read it all: the reader reports the damage
    return segment.size if found is None else found[0]


def _end(log: LiveLog, segment: Segment, offset: int) -> int:
    is_active = segment is log.segments.active
    size = log.readable_size if is_active else segment.size
    if is_active and offset >= log.end_offset and not log.ends_by_offset:
        return size
    if not is_active and offset >= _following(log, segment):
        return size
    try:
        found = segment.locate(offset - 1)
    except CorruptBatchError:
        return size
    return size if found is None else sum(found)


def _following(log: LiveLog, segment: Segment) -> int:
    return min(base for base in log.segments.base_offsets if base > segment.base_offset)


def _pieces(segment: Segment, begin: int, end: int, aim: int) -> Iterator[tuple[int, int]]:
    while end - begin > aim:
        try:
            entry = segment.indexes.offsets.first_at_position(begin + aim)
        except CorruptBatchError:
            break
        if entry is None or not begin < entry.position < end:
            break
        yield begin, entry.position
        begin = entry.position
    yield begin, end
