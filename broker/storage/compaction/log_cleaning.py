"""Compact one log: collect the last offset of every key from the dirty part, then copy all segments.

```
first pass    [first dirty offset, first uncleanable offset)      keys → last offsets, until the table is full
second pass   every segment up to where the first pass came       group by group: the kept records go to a new segment
```
The segments that are read are not changed; new ones are written beside them, as `.cleaned` files. After each group the
caller swaps the new segment in before it requests the next group. So the memory needed is that of the table, one batch
and some output; and after an interruption at any point each group reads as before or as after.

Raises `OSError`, `CorruptBatchError` and `RemoteProtocolError` where a log cannot be read; the caller removes the
incomplete group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from odradek.broker.clock import Clock
from odradek.broker.storage.batch_scan import StoredBatch, read_whole_batches
from odradek.broker.storage.cleanable import group_segments
from odradek.broker.storage.compaction.batch_cleaning import BatchCleaning, CleanedBatch, LastBatch
from odradek.broker.storage.compaction.cleaned_segment import CleanedSegment
from odradek.broker.storage.compaction.cleaned_transactions import CleanedTransactions
from odradek.broker.storage.compaction.cleaning_job import CleanedGroup, CleaningDone, CleaningJob, SegmentToClean
from odradek.broker.storage.compaction.dirty_offsets import KEYLESS, SUPERSEDED, TOMBSTONE, DirtyOffsets
from odradek.broker.storage.compaction.key_offsets import KeyOffsets
from odradek.broker.storage.compaction.pace import no_pause
from odradek.broker.storage.compaction.throttle import Throttle
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import LOG_SUFFIX, file_name
from odradek.protocol.records.batch_header import read_batch_header
from odradek.protocol.records.message_set import iter_messages
from odradek.protocol.records.record_iterator import records_section
from odradek.protocol.records.record_scan import ScannedRecord, scan_records

_DROPPED_BYTES = 8 << 20  # of the page cache, at a time
_DIRTY_SHARE = 8  # of the memory: 16 MiB by default, for as many offsets; Kafka gives all of it to the table


class LogCleaning:
    """One job. Iterate over it once: it yields each group when its files are complete; `done` is then the report.

    Calls `step` between two batches, or after as much other work.
    """

    def __init__(
        self, job: CleaningJob, descriptors: DescriptorCache, clock: Clock, step: Callable[[], None] = no_pause
    ) -> None:
        self.done = CleaningDone()
        self._job = job
        self._descriptors = descriptors
        self._clock = clock
        self._throttle = Throttle(job.bytes_per_second, clock)
        self._step = step
        dirty_bytes = min(job.buffer_bytes // _DIRTY_SHARE, job.first_uncleanable_offset - job.first_dirty_offset)
        self._keys = KeyOffsets(job.buffer_bytes - dirty_bytes, job.load_factor)
        self._keys.latest_offset = job.first_dirty_offset - 1
        self._dirty = DirtyOffsets(job.first_dirty_offset, dirty_bytes)
        self._config = LogConfig(
            segment_index_bytes=job.segment_index_bytes, index_interval_bytes=job.index_interval_bytes
        )

    def __iter__(self) -> Iterator[CleanedGroup]:
        job, done, started = self._job, self.done, self._clock.monotonic()
        self._collect_keys()
        done.end_offset = self._keys.latest_offset + 1
        done.indexing_seconds = self._clock.monotonic() - started
        done.buffer_utilization = self._keys.utilization
        cleaning = BatchCleaning(
            self._keys,
            self._dirty,
            CleanedTransactions(job.aborted),
            {producer_id: LastBatch(*last) for producer_id, last in job.last_batches.items()},
            end_offset=job.first_uncleanable_offset,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
        )
        segments = [segment for segment in job.segments if segment.base_offset < done.end_offset]
        for group in group_segments(
            segments,
            segment_bytes=job.segment_bytes,
            segment_index_bytes=job.segment_index_bytes,
            end_offset=job.first_uncleanable_offset,
        ):
            yield self._clean_group(group, cleaning)
        done.seconds = self._clock.monotonic() - started

    # ------------------------------------------------------------------------------------------------------- first pass

    def _collect_keys(self) -> None:
        job, keys = self._job, self._keys
        start = job.first_dirty_offset
        transactions = CleanedTransactions(each for each in job.aborted if each.last_offset >= start)
        ends = [segment.base_offset for segment in job.segments[1:]] + [job.first_uncleanable_offset]
        for segment, end in zip(job.segments, ends, strict=True):
            if end <= start:
                continue
            for batch, data in self._batches(segment):
                self.done.indexed_bytes += batch.size
                if batch.last_offset < start:
                    continue
                if not self._collect_batch(batch, data, transactions):
                    return
                keys.latest_offset = batch.last_offset
            keys.latest_offset = end - 1  # nothing is between the last batch and the next segment

    def _collect_batch(self, batch: StoredBatch, data: memoryview, transactions: CleanedTransactions) -> bool:
        """Record the keys of a batch; return False if they did not all fit."""
        if batch.magic < 2:
            messages = iter_messages(data)
            return self._collect(0, (ScannedRecord(m.offset, 0, m.key, m.value is not None, 0, 0) for m in messages))
        header = read_batch_header(data)
        self.done.indexed_records += header.records_count
        if transactions.is_discardable(data, header) or header.is_control:
            return True
        records = scan_records(records_section(data, 0, header), header.records_count)
        return self._collect(header.base_offset, records)

    def _collect(self, base_offset: int, records: Iterable[ScannedRecord]) -> bool:
        """Record the keys of records with offsets relative to `base_offset`; return False at one that did not fit."""
        keys, dirty, start = self._keys, self._dirty, self._job.first_dirty_offset
        put, set_state, capacity = keys.put, dirty.set_state, keys.capacity
        for delta, _, key, has_value, _, _ in records:
            offset = base_offset + delta
            if offset < start:
                continue
            if key is None:
                set_state(offset, KEYLESS)
                continue
            if keys.size >= capacity:
                return False
            superseded = put(key, offset)
            keys.latest_offset = offset
            if superseded >= 0:
                set_state(superseded, SUPERSEDED)
            if not has_value:
                set_state(offset, TOMBSTONE)
        return True

    # ------------------------------------------------------------------------------------------------------ second pass

    def _clean_group(self, group: list[SegmentToClean], cleaning: BatchCleaning) -> CleanedGroup:
        job = self._job
        cleaned = CleanedSegment(job.directory, group[0].base_offset, self._descriptors, self._config)
        cleaning.transactions.keep = cleaned.keep_aborted
        for segment in group:
            drops_tombstones = segment.modified_ms <= self._message_horizon_ms()
            for batch, data in self._batches(segment):
                if batch.magic == 2:
                    left = cleaning.clean(data, read_batch_header(data))
                else:
                    left = cleaning.clean_messages(data, drops_tombstones=drops_tombstones)
                self._take(batch, left, cleaned)
            self._drop_cached(segment)
        sizes = cleaned.finish(group[-1].modified_ms)
        return CleanedGroup(group[0].base_offset, [segment.base_offset for segment in group], sizes)

    def _drop_cached(self, segment: SegmentToClean) -> None:
        """Drop the page cache of a segment here, at low priority: else its removal would in the broker (50 ms a GB)."""
        path = self._path(segment)
        with self._descriptors.pinned(path) as number:
            for position in range(0, segment.size, _DROPPED_BYTES):
                self._descriptors.files.drop_cached(number, position, _DROPPED_BYTES)
                self._step()
        self._descriptors.forget(path)

    def _take(self, batch: StoredBatch, left: CleanedBatch, cleaned: CleanedSegment) -> None:
        done = self.done
        done.bytes_read += batch.size
        done.records_read += left.read
        done.records_written += left.kept
        done.invalid_records += left.invalid
        if left.data is None:
            return
        done.bytes_written += len(left.data)
        self._throttle.spend(len(left.data))
        max_timestamp = batch.max_timestamp
        if left.kept < left.read and left.kept:
            max_timestamp = read_batch_header(left.data).max_timestamp
        cleaned.append(bytes(left.data), batch.base_offset, batch.last_offset, max_timestamp)

    def _message_horizon_ms(self) -> int:
        """The latest modification time of a segment of old messages whose tombstones are removed."""
        clean = [each.modified_ms for each in self._job.segments if each.base_offset < self._job.first_dirty_offset]
        return clean[-1] - self._job.delete_retention_ms if clean else 0

    def _batches(self, segment: SegmentToClean) -> Iterator[tuple[StoredBatch, memoryview]]:
        path = self._path(segment)
        for batch, data in read_whole_batches(self._descriptors, path, 0, segment.size):
            self._throttle.spend(batch.size)
            self._step()
            yield batch, data
        self._descriptors.forget(path)

    def _path(self, segment: SegmentToClean) -> str:
        return f"{self._job.directory}/{file_name(segment.base_offset, LOG_SUFFIX)}"
