"""The byte ranges of segment files that hold a range of offsets, and their division into pieces for tasks.

The offset index gives the first and the last batch of the range, so nothing before and behind them is read. A range
longer than the aim is cut at index entries, which are positions of batches.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.offline.live_log import LiveLog
from odradek.broker.storage.offline.missing_offsets import MissingOffsets
from odradek.broker.storage.offline.segment_files import (
    FileIdentity,
    file_identity,
    read_offset_index,
    status_of,
)
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET, Segment


class SegmentRange(NamedTuple):
    """Bytes [begin, end) of a segment's file `path`: whole batches, with offsets in [base_offset, limit).

    `next_offset`: the offset that follows the last batch, the first of the next segment; None if it is not known.
    """

    path: str
    identity: FileIdentity
    begin: int
    end: int
    base_offset: int
    limit: int
    next_offset: int | None = None

    @property
    def size(self) -> int:
        return self.end - self.begin


def segment_ranges(log: LiveLog, start_offset: int, end_offset: int) -> Iterator[SegmentRange | MissingOffsets]:
    """The bytes with the records of [start_offset, end_offset), and segments in between that seem to be lost.

    Raises FileNotFoundError for a segment that is gone by now, or whose file was replaced.
    """
    if start_offset >= end_offset:
        return
    segments = log.segments.from_offset(start_offset)
    following = [segment.base_offset for segment in segments[1:]]
    for segment, next_offset in zip(segments, [*following, None], strict=True):
        if segment.base_offset >= end_offset:
            return
        path, identity = segment.log.path, log.identities[segment.base_offset]
        begin, end = _begin(segment, start_offset), _end(log, segment, end_offset, next_offset)
        # A swap renames the log before its indexes: while the log is the same file, the indexes belong to it.
        if file_identity(status_of(path)) != identity:
            raise FileNotFoundError(errno.ENOENT, "compaction has just put another file there", path)
        if begin < end:
            limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1 if next_offset is None else next_offset
            known = next_offset if end == segment.size else None
            yield SegmentRange(path, identity, begin, end, segment.base_offset, limit, known)
        elif not segment.size and next_offset is not None:
            yield MissingOffsets(path, 0, segment.base_offset, next_offset - 1)
        if log.was_compacted and next_offset is not None:  # else the task that reads the segment finds the gap
            lost = [base for base in log.without_log if segment.base_offset < base < next_offset]
            if lost:
                yield MissingOffsets(path, segment.size, min(lost), next_offset - 1)


def divided(range_: SegmentRange, aim: int, descriptors: DescriptorCache) -> Iterator[SegmentRange]:
    """The range in pieces of about `aim` bytes; in one piece if it has no usable index."""
    cuts: list[int] = []
    if range_.size > aim:
        try:
            index = read_offset_index(range_.path, descriptors)
            index.check(range_.end)
            position = range_.begin
            while range_.end - position > aim:
                entry = index.first_at_position(position + aim)
                if entry is None or not position < entry.position < range_.end:
                    break
                position = entry.position
                cuts.append(position)
            if file_identity(status_of(range_.path)) != range_.identity:
                cuts = []  # the index may be that of another file
        except (CorruptIndexError, OSError):
            cuts = []
    edges = [range_.begin, *cuts, range_.end]
    for begin, end in pairwise(edges):
        yield range_._replace(begin=begin, end=end, next_offset=range_.next_offset if end == range_.end else None)


def _begin(segment: Segment, offset: int) -> int:
    if offset <= segment.base_offset:
        return 0
    try:
        found = segment.locate(offset)
    except CorruptBatchError:
        return 0  # read it all: the reader reports the damage
    return segment.size if found is None else found[0]


def _end(log: LiveLog, segment: Segment, offset: int, next_offset: int | None) -> int:
    if next_offset is None:
        if offset >= log.last_end or (offset >= log.end_offset and not log.ends_by_offset):
            return segment.size
    elif offset >= next_offset:
        return segment.size
    try:
        return _locate_end(segment, offset)
    except (CorruptIndexError, CorruptBatchError):
        return segment.size


def _locate_end(segment: Segment, offset: int) -> int:
    """The end of the batch with the last offset below `offset`.

    A batch whose base offset is too high would end the range early. So the batch behind it must have higher offsets.
    """
    offsets, _ = segment.indexes.files
    entry = offsets.lookup(offset - 1) if offsets.exists else None
    position = 0 if entry is None else entry.position
    first = segment.log.batch_at(position)
    if entry is not None and position and (first is None or first.base_offset > entry.offset):
        position = 0  # the index is wrong
    end, last_offset = segment.size, -1
    for batch in segment.log.batches(position):
        if last_offset >= 0 and batch.base_offset > last_offset:
            return end
        end, last_offset = segment.size, -1
        if batch.last_offset >= offset - 1:
            end, last_offset = batch.position + batch.size, batch.last_offset
    return end
