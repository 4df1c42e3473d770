"""The check of one partition: its segments in order, and the small files beside them.

It reads nothing of other partitions, so partitions can be checked concurrently, also on several machines; so can parts
of one partition (`segments_outcome`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from odradek.broker.inspection.batch_check import BatchCheck, SegmentIndexChecks
from odradek.broker.inspection.index_check import OffsetIndexCheck, TimeIndexCheck
from odradek.broker.inspection.problem import Problem, Report
from odradek.broker.inspection.segments_outcome import SegmentsOutcome
from odradek.broker.inspection.small_files_check import check_leader_epochs, check_snapshots, check_topic_id
from odradek.broker.inspection.transaction_check import TransactionCheck
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.index.transaction_index import AbortedTransaction, TransactionIndex
from odradek.broker.storage.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from odradek.broker.storage.offline.listing import PartitionFiles
from odradek.broker.storage.offline.missing_offsets import MissingOffsets, SegmentGoneError, is_explained

_INDEX_BLOCK = 12 * 8192  # whole entries of either index


class PartitionCheck:
    """One check of one partition. Calls `report` for each problem, and `progress` with the bytes of logs checked."""

    def __init__(
        self,
        descriptors: DescriptorCache,
        partition: PartitionFiles,
        log_start_offset: int,
        report: Report,
        progress: Callable[[int], None],
    ) -> None:
        self._descriptors = descriptors
        self._files = descriptors.files
        self._partition = partition
        self._log_start_offset = log_start_offset
        self._report = report
        self._progress = progress
        self._is_compacted = False

    def run(self) -> SegmentsOutcome:
        """Check everything. Raises `OSError` if a file cannot be read."""
        found = self.check_segments(sorted(self._partition.segments))
        self.check_small_files(found)
        return found

    def check_segments(self, base_offsets: Sequence[int]) -> SegmentsOutcome:
        """Check these segments, which follow each other, as if they were the first ones."""
        partition = self._partition
        transactions = TransactionCheck(self._report)
        batches = BatchCheck(self._descriptors, transactions, self._report, self._progress)
        logs = [base_offset for base_offset in base_offsets if LOG_SUFFIX in partition.segments[base_offset]]
        for base_offset in base_offsets:
            sizes = partition.segments[base_offset]
            if LOG_SUFFIX in sizes:
                if base_offset != logs[0] and batches.is_end_known:
                    self.check_gap(batches.next_offset, base_offset)
                self._check_segment(base_offset, sizes, batches, transactions)
            else:
                for suffix in sizes:
                    self._report(Problem(self._shown(base_offset, suffix), "is an index without a log"))
        return SegmentsOutcome(
            base_offset=min(logs or base_offsets, default=0),
            next_offset=batches.next_offset,
            is_end_known=batches.is_end_known,
            segments=len(logs),
            batches=batches.batches,
            epoch_runs=batches.epoch_runs,
            open_producers=transactions.open_producers,
            ended_producers=sorted(transactions.ended),
            unlisted_producers=sorted(producer for producer, unlisted in transactions.ended.items() if unlisted),
        )

    def check_gap(self, end_offset: int, base_offset: int) -> None:
        """Check that no offset is missing between the end of a segment and the base offset of the next one.

        The evidence that explains one gap explains all gaps of the partition. So it is searched for once.
        """
        if end_offset >= base_offset or self._is_compacted:
            return
        partition = self._partition
        missing = MissingOffsets(partition.path_of(base_offset, LOG_SUFFIX), 0, end_offset, base_offset - 1)
        with contextlib.suppress(SegmentGoneError):  # a broker has deleted or compacted it meanwhile
            self._is_compacted = is_explained(missing, *partition.key)
            if not self._is_compacted:
                self._report(Problem(self._shown(base_offset, LOG_SUFFIX), missing.reason, 0, end_offset))

    def check_small_files(self, found: SegmentsOutcome) -> None:
        """Check the files beside the segments against the outcome of all segments."""
        name, path = self._partition.name, self._partition.path
        check_snapshots(self._files, path, name, self._partition.snapshots, found.next_offset, self._report)
        check_leader_epochs(self._files, path, name, found.epoch_runs, self._log_start_offset, self._report)
        check_topic_id(self._files, path, name, self._report)

    def _check_segment(
        self, base_offset: int, sizes: dict[str, int], batches: BatchCheck, transactions: TransactionCheck
    ) -> None:
        partition = self._partition
        offsets = self._read_index(base_offset, OFFSET_INDEX_SUFFIX, sizes)
        times = self._read_index(base_offset, TIME_INDEX_SUFFIX, sizes)
        shown_as = self._shown(base_offset, LOG_SUFFIX)
        indexes = SegmentIndexChecks(
            OffsetIndexCheck(self._shown(base_offset, OFFSET_INDEX_SUFFIX), base_offset, offsets, self._report),
            TimeIndexCheck(self._shown(base_offset, TIME_INDEX_SUFFIX), base_offset, times, self._report),
            offsets,
        )
        aborted = self._read_transactions(base_offset, sizes)
        transactions.start_segment(shown_as, self._shown(base_offset, TRANSACTION_INDEX_SUFFIX), aborted)
        path = partition.path_of(base_offset, LOG_SUFFIX)
        batches.check(path, shown_as, sizes[LOG_SUFFIX], base_offset, indexes)
        self._descriptors.forget(path)
        indexes.offsets.finish()
        indexes.times.finish()
        transactions.finish_segment()

    def _shown(self, base_offset: int, suffix: str) -> str:
        """The name of a segment's file in problems."""
        return f"{self._partition.name}/{file_name(base_offset, suffix)}{self._partition.ending(base_offset)}"

    def _read_index(self, base_offset: int, suffix: str, sizes: dict[str, int]) -> bytes:
        """The entries of an index, and the zeros behind them modulo an entry, which show whether the last is whole."""
        if suffix not in sizes:
            if sizes[LOG_SUFFIX]:
                self._report(Problem(self._shown(base_offset, suffix), "is missing"))
            return b""
        path = self._partition.path_of(base_offset, suffix)
        try:
            with self._descriptors.pinned(path) as number:
                return self._read_to_room(number, sizes[suffix])
        finally:
            self._descriptors.forget(path)

    def _read_to_room(self, number: int, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            block = self._files.pread(number, _INDEX_BLOCK, len(data))
            data += block
            if not block.strip(b"\0"):
                # No index has so many entries of zeros, so this is room: megabytes in an active segment.
                data += bytes((size - len(data)) % _INDEX_BLOCK)
                break
        return bytes(data)

    def _read_transactions(self, base_offset: int, sizes: dict[str, int]) -> list[AbortedTransaction]:
        path = self._partition.path_of(base_offset, TRANSACTION_INDEX_SUFFIX)
        index = TransactionIndex(path, base_offset, self._descriptors, sizes.get(TRANSACTION_INDEX_SUFFIX))
        try:
            index.check()
            return list(index.entries())
        except CorruptIndexError as error:
            self._report(Problem(self._shown(base_offset, TRANSACTION_INDEX_SUFFIX), str(error)))
            return []
        finally:
            self._descriptors.forget(path)
