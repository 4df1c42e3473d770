"""The offset index of a segment while a part of the segment is read: as evidence, and for finding batches again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from odradek.broker.storage.batch_scan import CorruptBatchError, StoredBatch, scan_batches
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.offline.segment_files import file_identity, read_offset_index, status_of
from odradek.pipeline.klog.chunks import Chunk
from odradek.pipeline.klog.segment_ranges import SegmentRange
from odradek.pipeline.records.varints import Ints

_INDEXED = 4096  # bytes; no index has an entry for the first batches, up to `index.interval.bytes`
_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])


class LazyEntries:
    """The entries for a range, read when they are first needed: most ranges show no reason to doubt their batches."""

    def __init__(self, range_: SegmentRange) -> None:
        self._range = range_
        self._entries: IndexEntries | None = None

    def get(self) -> IndexEntries:
        if self._entries is None:
            is_small = not self._range.begin and self._range.size <= _INDEXED
            self._entries = IndexEntries() if is_small else IndexEntries.read(self._range)
        return self._entries


class IndexEntries:
    """The entries up to the end of a range, ascending; none if the index is missing, wrong, or of another file.

    `positions` are those of batches, `offsets` the last offset of each, or of a later batch of the same append.
    """

    def __init__(self, offsets: Ints | None = None, positions: Ints | None = None) -> None:
        self.offsets = np.zeros(0, np.int64) if offsets is None else offsets
        self.positions = np.zeros(0, np.int64) if positions is None else positions

    @classmethod
    def read(cls, range_: SegmentRange) -> IndexEntries:
        """Read the index beside the log of a range."""
        descriptors = DescriptorCache(ReadOnlyFiles())
        try:
            index = read_offset_index(range_.path, descriptors)
            index.check(range_.end)
            with descriptors.pinned(index.path) as number:
                data = descriptors.files.pread(number, index.size, 0)
            # A swap renames the log before its indexes: while the log is the same file, the index belongs to it.
            if file_identity(status_of(range_.path)) != range_.identity:
                return cls()
        except (CorruptIndexError, OSError):
            return cls()
        finally:
            descriptors.close()
        entries: NDArray[np.void] = np.frombuffer(data[: len(data) // _ENTRY.itemsize * _ENTRY.itemsize], _ENTRY)
        offsets, positions = entries["offset"].astype(np.int64), entries["position"].astype(np.int64)
        if (np.diff(offsets) <= 0).any() or (np.diff(positions) <= 0).any():
            return cls()
        return cls(offsets + range_.base_offset, positions)

    def position_behind(self, position: int) -> int | None:
        """The first position above `position`; None without one."""
        number = int(np.searchsorted(self.positions, position, side="right"))
        return int(self.positions[number]) if number < len(self.positions) else None

    def before(self, range_: SegmentRange) -> Iterator[StoredBatch]:
        """The batches from the last entry before the range up to its beginning."""
        number = int(np.searchsorted(self.positions, range_.begin, side="left")) - 1
        start = int(self.positions[number]) if number >= 0 else 0
        descriptors = DescriptorCache(ReadOnlyFiles())
        try:
            yield from scan_batches(descriptors, range_.path, start, range_.begin)
        except (CorruptBatchError, OSError):
            return
        finally:
            descriptors.close()

    def wrong(self, chunk: Chunk, last_offsets: Ints) -> set[int]:
        """The numbers of batches whose last offset is above that of their entry; none if the index is not credible."""
        first, last = np.searchsorted(self.positions, [chunk.position, chunk.position + chunk.batches.size])
        if first == last:
            return set()
        starts = np.asarray(chunk.batches.positions) + chunk.position
        positions, offsets = self.positions[first:last], self.offsets[first:last]
        numbers = np.searchsorted(starts, positions)
        is_wrong = last_offsets[numbers] > offsets
        if (starts[numbers] != positions).any() or 1 < len(numbers) < 2 * is_wrong.sum():
            return set()
        return set(numbers[is_wrong].tolist())
