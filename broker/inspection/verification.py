"""`verify`: goes through a log directory as it stands, and says of everything that is wrong what and where.

Nothing is opened as a broker would, because that mends; the files are taken as they are, one partition after another
and one segment after another. What a start of a broker is made for is no fault: no clean-shutdown marker, room behind
an active segment, files of segments on their way out or in. These are passed over.

Records are not decompressed: the checksum covers them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from broker.inspection.batch_check import BatchCheck, SegmentIndexChecks
from broker.inspection.index_check import OffsetIndexCheck, TimeIndexCheck
from broker.inspection.problem import Problem, Report
from broker.inspection.small_files_check import (
    check_directory_files,
    check_leader_epochs,
    check_snapshots,
    check_topic_id,
)
from broker.inspection.transaction_check import TransactionCheck
from broker.storage.checkpoints import OffsetCheckpoint, Partition
from broker.storage.descriptors import DescriptorCache
from broker.storage.files import Files
from broker.storage.index_file import CorruptIndexError
from broker.storage.names import (
    LOG_START_OFFSETS,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    RAFT_METADATA,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
    is_deleted_directory,
    parse_file_name,
    parse_partition_directory,
)
from broker.storage.read_only_files import ReadOnlyFiles
from broker.storage.transaction_index import AbortedTransaction, TransactionIndex

_INDEX_BLOCK = 12 * 8192  # whole entries of either index

Progress = Callable[[int, int], None]
"""Called with the bytes of logs done, and of all."""


class Outcome(msgspec.Struct):
    """What was looked at; `bytes` are those of logs."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    bytes: int = 0
    problems: int = 0


class Verification:
    """One run over the directory at `path`. `report` is told of each problem as it is found."""

    def __init__(self, path: str, report: Report, progress: Progress, files: Files | None = None) -> None:
        self.outcome = Outcome()
        self._path = path
        self._told = report
        self._progress = progress
        self._files = ReadOnlyFiles() if files is None else files
        self._descriptors = DescriptorCache(self._files)
        self._log_start_offsets: dict[Partition, int] = {}
        self._total = 0

    def run(self) -> Outcome:
        """Go through everything. Raises `OSError` where the directory or a file in it cannot be read."""
        try:
            entries = self._files.scan(self._path)
            partitions = [
                _PartitionFiles(self._files, self._path, entry.name, key)
                for entry in sorted(entries)
                if entry.is_directory and (key := _partition_of(entry.name)) is not None
            ]
            self._log_start_offsets = OffsetCheckpoint(self._files, self._path, LOG_START_OFFSETS).read()
            self._total = sum(partition.size for partition in partitions)
            ends = {partition.key: self._check_partition(partition) for partition in partitions}
            names = [entry.name for entry in entries if not entry.is_directory]
            check_directory_files(self._files, self._path, names, ends, self._report)
            return self.outcome
        finally:
            self._descriptors.close()

    def _check_partition(self, partition: _PartitionFiles) -> int:
        """Check one partition and return its log end offset."""
        transactions = TransactionCheck(self._report)
        batches = BatchCheck(self._descriptors, transactions, self._report, self._note_progress)
        for base_offset, sizes in sorted(partition.segments.items()):
            if LOG_SUFFIX in sizes:
                self._check_segment(partition, base_offset, sizes, batches, transactions)
            else:
                for suffix in sizes:
                    name = file_name(base_offset, suffix)
                    self._report(Problem(f"{partition.name}/{name}", "is an index without a log"))
        check_snapshots(
            self._files, partition.path, partition.name, partition.snapshots, batches.next_offset, self._report
        )
        start = self._log_start_offsets.get(partition.key, 0)
        check_leader_epochs(self._files, partition.path, partition.name, batches.epoch_runs, start, self._report)
        check_topic_id(self._files, partition.path, partition.name, self._report)
        self.outcome.partitions += 1
        self.outcome.batches += batches.batches
        return batches.next_offset

    def _check_segment(
        self,
        partition: _PartitionFiles,
        base_offset: int,
        sizes: dict[str, int],
        batches: BatchCheck,
        transactions: TransactionCheck,
    ) -> None:
        offsets = self._read_index(partition, base_offset, OFFSET_INDEX_SUFFIX, sizes)
        times = self._read_index(partition, base_offset, TIME_INDEX_SUFFIX, sizes)
        shown = f"{partition.name}/{file_name(base_offset, '')}"
        indexes = SegmentIndexChecks(
            OffsetIndexCheck(shown + OFFSET_INDEX_SUFFIX, base_offset, offsets, self._report),
            TimeIndexCheck(shown + TIME_INDEX_SUFFIX, base_offset, times, self._report),
            offsets,
        )
        transaction_entries = self._read_transactions(partition, base_offset, sizes)
        transactions.start_segment(shown + LOG_SUFFIX, shown + TRANSACTION_INDEX_SUFFIX, transaction_entries)
        path = f"{partition.path}/{file_name(base_offset, LOG_SUFFIX)}"
        batches.check(path, shown + LOG_SUFFIX, sizes[LOG_SUFFIX], base_offset, indexes)
        self._descriptors.forget(path)
        indexes.offsets.finish()
        indexes.times.finish()
        transactions.finish_segment()
        self.outcome.segments += 1

    def _read_index(self, partition: _PartitionFiles, base_offset: int, suffix: str, sizes: dict[str, int]) -> bytes:
        """The file without the room at its end, but for as much as shows whether it ends with a whole entry."""
        name = file_name(base_offset, suffix)
        if suffix not in sizes:
            if sizes[LOG_SUFFIX]:
                self._report(Problem(f"{partition.name}/{name}", "is missing"))
            return b""
        path = f"{partition.path}/{name}"
        descriptor = self._descriptors.pin(path)
        try:
            data = bytearray()
            while len(data) < sizes[suffix]:
                block = self._files.pread(descriptor.number, _INDEX_BLOCK, len(data))
                data += block
                if not block.strip(b"\0"):
                    # No index has so many entries of zeros; so this is room, megabytes of it in an active segment.
                    data += bytes((sizes[suffix] - len(data)) % _INDEX_BLOCK)
                    break
            return bytes(data)
        finally:
            self._descriptors.unpin(descriptor)
            self._descriptors.forget(path)

    def _read_transactions(
        self, partition: _PartitionFiles, base_offset: int, sizes: dict[str, int]
    ) -> list[AbortedTransaction]:
        name = file_name(base_offset, TRANSACTION_INDEX_SUFFIX)
        path = f"{partition.path}/{name}"
        index = TransactionIndex(path, base_offset, self._descriptors, sizes.get(TRANSACTION_INDEX_SUFFIX))
        try:
            index.check()
            return list(index.entries())
        except CorruptIndexError as error:
            self._report(Problem(f"{partition.name}/{name}", str(error)))
            return []
        finally:
            self._descriptors.forget(path)

    def _report(self, problem: Problem) -> None:
        self.outcome.problems += 1
        self._told(problem)

    def _note_progress(self, size: int) -> None:
        self.outcome.bytes += size
        self._progress(self.outcome.bytes, self._total)


class _PartitionFiles:
    """The files of one partition: segments with the sizes of their files by suffix, offsets of snapshots."""

    def __init__(self, files: Files, directory: str, name: str, key: Partition) -> None:
        self.name = name
        self.key = key
        self.path = f"{directory}/{name}"
        self.segments: dict[int, dict[str, int]] = {}
        self.snapshots: list[int] = []
        for entry in sorted(files.scan(self.path)):
            parsed = parse_file_name(entry.name)
            if parsed is not None and not entry.is_directory:
                offset, suffix = parsed
                if suffix in SEGMENT_SUFFIXES:
                    self.segments.setdefault(offset, {})[suffix] = entry.size
                elif suffix == SNAPSHOT_SUFFIX:
                    self.snapshots.append(offset)

    @property
    def size(self) -> int:
        return sum(sizes.get(LOG_SUFFIX, 0) for sizes in self.segments.values())


def _partition_of(name: str) -> Partition | None:
    key = parse_partition_directory(name)
    return None if key is None or key[0] == RAFT_METADATA or is_deleted_directory(name) else key
