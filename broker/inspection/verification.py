"""`verify`: goes through a log directory as it stands, and says of everything that is wrong what and where.

Nothing is opened as a broker would, because that mends; the files are taken as they are, one partition after another
and one segment after another. What a start of a broker is made for is no fault: no clean-shutdown marker, room behind
an active segment, files of segments on their way out or in. These are passed over.

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
        self._total = 0

    def run(self) -> Outcome:
        """Go through everything. Raises `OSError` where the directory or a file in it cannot be read."""
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
        self._told(problem)

    def _add_progress(self, size: int) -> None:
        self.outcome.bytes += size
        self._progress(self.outcome.bytes, self._total)
