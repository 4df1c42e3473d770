"""Parts of a log directory, to be checked side by side: whole partitions, or some of the segments of a large one.

A worker checks a part (`check_parts`). The reports of a partition's parts are joined on the driver, which then looks at
the partition's small files; where a fault may cross from one part into the next, the partition has to be checked again
as a whole (`odradek.broker.inspection.segments_outcome`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from odradek.broker.inspection.partition_check import PartitionCheck
from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.segments_outcome import SegmentsOutcome, joined
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.names import LOG_START_OFFSETS, LOG_SUFFIX, partition_directory
from odradek.broker.storage.offline.listing import PartitionFiles

MAX_PROBLEMS = 10_000
"""That are kept of a part; the rest is counted."""


class Part(NamedTuple):
    """Segments of a partition that follow each other; without `base_offsets` it is the whole partition."""

    topic: str
    partition: int
    base_offsets: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


class PartReport(msgspec.Struct):
    """What was found of a part; `found` may be cut short, `problems` counts all."""

    part: Part
    outcome: SegmentsOutcome
    bytes: int = 0
    problems: int = 0
    found: list[Problem] = []

    def add(self, problem: Problem) -> None:
        self.problems += 1
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(problem)


def parts_of(partition: PartitionFiles, share_bytes: int) -> Iterator[tuple[int, Part]]:
    """The parts of a partition, each with the bytes of its logs: itself, or segments of at most `share_bytes`."""
    if partition.size <= share_bytes:
        yield partition.size, Part(*partition.key)
        return
    gathered: list[int] = []
    size = 0
    for base_offset, sizes in sorted(partition.segments.items()):
        length = sizes.get(LOG_SUFFIX, 0)
        if gathered and size + length > share_bytes:
            yield size, Part(*partition.key, tuple(gathered))
            gathered, size = [], 0
        gathered.append(base_offset)
        size += length
    yield size, Part(*partition.key, tuple(gathered))


def check_parts(directory: str, parts: Sequence[Part]) -> Iterator[PartReport]:
    """On a worker: check these parts. Raises `OSError` where the worker cannot read them."""
    files = ReadOnlyFiles()
    descriptors = DescriptorCache(files)
    try:
        starts = OffsetCheckpoint(files, directory, LOG_START_OFFSETS).read()
        for part in parts:
            partition = PartitionFiles(files, directory, partition_directory(*part.key), part.key)
            yield _check_part(descriptors, partition, part, starts.get(part.key, 0))
    finally:
        descriptors.close()


def _check_part(descriptors: DescriptorCache, partition: PartitionFiles, part: Part, start: int) -> PartReport:
    report = PartReport(part, SegmentsOutcome())

    def note_progress(size: int) -> None:
        report.bytes += size

    check = PartitionCheck(descriptors, partition, start, report.add, note_progress)
    if part.base_offsets:  # but those that retention has removed since
        report.outcome = check.check_segments([each for each in part.base_offsets if each in partition.segments])
    else:
        report.outcome = check.run()
    return report


def joined_report(reports: Sequence[PartReport], partition: PartitionFiles, start: int) -> PartReport | None:
    """The report of the partition that these parts make up; None if it has to be checked as a whole."""
    if not reports[0].part.base_offsets:
        return reports[0]
    outcome = joined([each.outcome for each in reports])
    if outcome is None:
        return None
    report = PartReport(Part(*partition.key), outcome, bytes=sum(each.bytes for each in reports))
    for each in reports:
        report.found += each.found
        report.problems += each.problems
    check = PartitionCheck(DescriptorCache(ReadOnlyFiles()), partition, start, report.add, lambda _: None)
    check.check_small_files(outcome)
    return report
