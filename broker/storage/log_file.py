"""The `.log` file of a segment: whole batches back to back, written at the end, read anywhere.

`size` counts the bytes of batches. The file may be longer: preallocated, or with bytes of a failed write. Those bytes
are not part of the log, and are overwritten or cut off. `batch_scan` describes the batches and walks over them.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.storage.batch_scan import (
    Head,
    StoredBatch,
    find_batch,
    read_whole_batches,
    scan_batches,
    scan_headers,
    scan_heads,
)
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_errors import is_transient
from odradek.broker.storage.disk.files import BytesLike
from odradek.broker.storage.index.position_cache import PositionCache
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import BatchHeader


class LogFile:
    """One file with one writer, and readers beside it. Positions are in bytes, and all are boundaries of batches.

    Every walk raises `CorruptBatchError` where there is no batch, or only a part of one.
    """

    __slots__ = ("base_offset", "descriptors", "path", "size")

    def __init__(self, path: str, base_offset: int, descriptors: DescriptorCache, size: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.descriptors = descriptors
        self.size = size

    def __repr__(self) -> str:
        return f"{self.path} of {pluralize(self.size, 'byte')}"

    # ---------------------------------------------------------------------------------------------------------- writing

    def create(self, preallocate_bytes: int) -> None:
        """Create the file with this many zeros, which take no space on the disk yet."""
        self.descriptors.create(self.path)
        if preallocate_bytes:
            self._set_file_size(preallocate_bytes)

    def write(self, data: BytesLike) -> int:
        """Write `data` behind the last batch and return its position; it counts once the caller raises `size`."""
        position = self.size
        descriptor = self.descriptors.pin(self.path)
        try:
            self.descriptors.files.pwrite(descriptor.number, data, position)
        except OSError as error:
            if is_transient(error):  # the log stays in use: a recovery must not find the partial write
                self.descriptors.files.truncate(descriptor.number, position)
            raise
        finally:
            self.descriptors.unpin(descriptor)
        return position

    def truncate(self, size: int) -> None:
        """Cut off everything from `size` on."""
        self.size = size  # first: readers that find too few bytes compare with it
        self._set_file_size(size)

    def trim(self) -> None:
        """Cut off the bytes behind the last batch; no batch follows."""
        with self.descriptors.pinned(self.path) as number:
            if self.descriptors.files.size(number) != self.size:
                self.descriptors.files.truncate(number, self.size)

    def flush(self) -> None:
        with self.descriptors.pinned(self.path) as number:
            self.descriptors.files.fsync(number)

    def _set_file_size(self, size: int) -> None:
        with self.descriptors.pinned(self.path) as number:
            self.descriptors.files.truncate(number, size)

    # ---------------------------------------------------------------------------------------------------------- reading

    def modified_ms(self) -> int:
        with self.descriptors.pinned(self.path) as number:
            return self.descriptors.files.modified_ms(number)

    def slice(self, position: int, length: int, positions: PositionCache | None = None) -> LogSlice:
        """`length` bytes from `position` on. Reading them puts the batch behind them into `positions`."""
        return LogSlice(
            self.descriptors, self.descriptors.pin(self.path), position, length, self.base_offset, positions
        )

    def read(self, batch: StoredBatch, max_bytes: int | None = None) -> bytes:
        """The bytes of a batch: all, or up to `max_bytes` from its start."""
        length = batch.size if max_bytes is None else min(batch.size, max_bytes)
        descriptor = self.descriptors.pin(self.path)
        try:
            return self.descriptors.files.pread(descriptor.number, length, batch.position)
        finally:
            self.descriptors.unpin(descriptor)

    def batch_at(self, position: int) -> StoredBatch | None:
        """The batch that starts at `position`; None at the end."""
        return next(self.batches(position), None)

    def batches(self, start: int = 0) -> Iterator[StoredBatch]:
        """The batches from `start` on."""
        return scan_batches(self.descriptors, self.path, start, self.size)

    def heads(self, start: int, large_head: int) -> Iterator[Head]:
        """The batches from `start` on, with their first bytes, which are `large_head` where batches are large."""
        return scan_heads(self.descriptors, self.path, start, self.size, large_head)

    def headers(self, start: int = 0) -> Iterator[tuple[StoredBatch, BatchHeader]]:
        """The batches of magic 2 from `start` on, with their headers."""
        return scan_headers(self.descriptors, self.path, start, self.size)

    def whole_batches(self) -> Iterator[tuple[StoredBatch, memoryview]]:
        """All batches with their bytes, checksums verified."""
        return read_whole_batches(self.descriptors, self.path, 0, self.size)

    def find(self, offset: int, start: int) -> tuple[int, int, int] | None:
        """Position, size and base offset of the first batch from `start` on whose last offset is at least `offset`."""
        return find_batch(self.descriptors, self.path, start, self.size, offset)
