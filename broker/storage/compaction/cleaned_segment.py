"""The segment that compaction writes: `.cleaned` files, batch by batch, to replace a group of segments.

From some ten thousand bytes on, a write costs little more than its bytes, so batches are gathered. They are not many,
because the kernel does not interrupt a write, and a request may be waiting for the processor. The file is synced in
parts: the sync of a whole gigabyte would delay all other syncs.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import BytesLike
from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from odradek.broker.storage.segment import Segment

_GATHERED_BYTES = 64 << 10
_SYNCED_BYTES = 4 << 20


class _Gathered(NamedTuple):
    """A batch that is not written yet."""

    data: BytesLike
    base_offset: int
    last_offset: int
    max_timestamp: int


class CleanedSegment:
    """A new segment at `base_offset`, in place of any older files of its names. Raises `OSError`."""

    def __init__(self, directory: str, base_offset: int, descriptors: DescriptorCache, config: LogConfig) -> None:
        self._segment = Segment(
            directory, base_offset, descriptors, config, sizes={}, created_ms=0, ending=CLEANED_SUFFIX
        )
        for path in self._segment.paths:
            descriptors.files.remove(path)
        self._segment.create()
        self._descriptors = descriptors
        self._gathered: list[_Gathered] = []
        self._gathered_bytes = 0
        self._synced = 0

    def append(self, data: BytesLike, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        self._gathered.append(_Gathered(data, base_offset, last_offset, max_timestamp))
        self._gathered_bytes += len(data)
        if self._gathered_bytes >= _GATHERED_BYTES:
            self._write()

    def keep_aborted(self, transaction: AbortedTransaction) -> None:
        self._segment.transaction_index.append(transaction)

    def finish(self, modified_ms: int) -> dict[str, int]:
        """Write and sync everything; return the files' sizes by suffix. Sets the log's modification time."""
        self._write()
        segment = self._segment
        segment.finish()
        with self._descriptors.pinned(segment.log.path) as number:
            self._descriptors.files.set_modified_ms(number, modified_ms)
        segment.flush()
        offsets, times = segment.indexes.files
        sizes = {LOG_SUFFIX: segment.size, OFFSET_INDEX_SUFFIX: offsets.size, TIME_INDEX_SUFFIX: times.size}
        if segment.transaction_index.exists:
            sizes[TRANSACTION_INDEX_SUFFIX] = segment.transaction_index.size
        segment.release()
        return sizes

    def _write(self) -> None:
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if not gathered:
            return
        segment = self._segment
        position = segment.log.write(b"".join([batch.data for batch in gathered]))
        for data, base_offset, last_offset, max_timestamp in gathered:
            segment.record_batch(base_offset, last_offset, max_timestamp, position, len(data))
            position += len(data)
        if position - self._synced >= _SYNCED_BYTES:
            segment.log.flush()
            self._synced = position
