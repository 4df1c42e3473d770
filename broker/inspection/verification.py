"""`verify`: check a log directory as it is, and report every problem with its place.

Nothing is opened as a broker would, because that repairs; the files are read as they are, one partition and one segment
after another. A broker's start handles the following, so they are no problems: no clean-shutdown marker, room behind an
active segment, files of interrupted operations (`offline.listing` says which files are the log's).

Records are not decompressed: the checksum covers them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from odradek.broker.inspection.partition_check import PartitionCheck
from odradek.broker.inspection.problem import Problem, Report
from odradek.broker.inspection.small_files_check import check_directory_files
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.names import LOG_START_OFFSETS
from odradek.broker.storage.offline.listing import PartitionFiles, list_partitions

Progress = Callable[[int, int], None]
"""Called with the bytes of logs that were checked, and of all logs."""


class Outcome(msgspec.Struct):
    """The number of things that were checked; `bytes` are those of logs."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    bytes: int = 0
    problems: int = 0


class Verification:
    """One run over the directory at `path`. Calls `report` for each problem as it is found."""

    def __init__(self, path: str, report: Report, progress: Progress, files: Files | None = None) -> None:
        self.outcome = Outcome()
        self._path = path
        self._on_problem = report
        self._progress = progress
        self._files = ReadOnlyFiles() if files is None else files
        self._descriptors = DescriptorCache(self._files)
        self._total = 0

    def run(self) -> Outcome:
        """Check everything. Raises `OSError` if the directory or a file in it cannot be read."""
        try:
            partitions = list_partitions(self._files, self._path)
            starts = OffsetCheckpoint(self._files, self._path, LOG_START_OFFSETS).read()
            self._total = sum(partition.size for partition in partitions)
            ends = {each.key: self._check_partition(each, starts.get(each.key, 0)) for each in partitions}
            check_directory_files(self._files, self._path, ends, self._report)
            return self.outcome
        finally:
            self._descriptors.close()

    def _check_partition(self, partition: PartitionFiles, log_start_offset: int) -> int:
        """Check one partition and return its log end offset."""
        check = PartitionCheck(self._descriptors, partition, log_start_offset, self._report, self._add_progress)
        found = check.run()
        self.outcome.partitions += 1
        self.outcome.segments += found.segments
        self.outcome.batches += found.batches
        return found.next_offset

    def _report(self, problem: Problem) -> None:
        self.outcome.problems += 1
        self._on_problem(problem)

    def _add_progress(self, size: int) -> None:
        self.outcome.bytes += size
        self._progress(self.outcome.bytes, self._total)
