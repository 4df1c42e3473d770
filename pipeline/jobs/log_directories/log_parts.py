"""Parts of a log directory that are checked in parallel: whole partitions, or some segments of a large one.

A worker checks a part (`check_parts`). The driver joins the reports of a partition's parts, and then checks the
partition's small files. If a fault may cross the border of two parts, the partition must be checked again as a whole
(`odradek.broker.inspection.segments_outcome`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
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
"""The number of problems of a part that are kept; others are only counted."""


class Part(NamedTuple):
    """Consecutive segments of a partition; without `base_offsets` the whole partition."""

    topic: str
    partition: int
    base_offsets: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


class PartReport(msgspec.Struct):
    """The result of checking a part; `found` has at most `MAX_PROBLEMS`, `problems` counts all."""

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
    """Yield the parts of a partition with their bytes: the whole, or segments of at most `share_bytes` together."""
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
    """Check parts on a worker. Raises `OSError` if the worker cannot read them."""
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

    def add_bytes(size: int) -> None:
        report.bytes += size

    check = PartitionCheck(descriptors, partition, start, report.add, add_bytes)
    if part.base_offsets:  # except those that retention has deleted since
        report.outcome = check.check_segments([each for each in part.base_offsets if each in partition.segments])
    else:
        report.outcome = check.run()
    return report


def joined_report(reports: Sequence[PartReport], partition: PartitionFiles, start: int) -> PartReport | None:
    """Join the reports of a partition's parts; None if it must be checked as a whole."""
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
    logs = [each.outcome for each in reports if each.outcome.segments]
    for before, after in pairwise(logs):
        if before.is_end_known:
            check.check_gap(before.next_offset, after.base_offset)
    check.check_small_files(outcome)
    return report
