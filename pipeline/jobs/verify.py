"""`verify`: every checksum, offset and index of a log directory, with a task for each partition.

The checks, and the words for what is wrong, are those of `python -m broker verify` (docs/inspect.md): here the
partitions are shared out, so that a directory of any size takes as long as its largest partition. The directory must be
where every worker sees it. Small partitions share a task, and the large ones begin first.

```
driver: list partitions ─► tasks: PartitionCheck of each ─► driver: the files beside the partitions ─► JSON
```
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from broker.inspection.partition_check import PartitionCheck, PartitionFiles, partitions_of
from broker.inspection.problem import Problem
from broker.inspection.small_files_check import check_directory_files
from broker.inspection.verification import Outcome
from broker.storage.checkpoints import OffsetCheckpoint, Partition
from broker.storage.descriptors import DescriptorCache
from broker.storage.names import LOG_START_OFFSETS, partition_directory
from broker.storage.read_only_files import ReadOnlyFiles
from pipeline.jobs import FAILED
from pipeline.jobs.arguments import add_spark_arguments
from pipeline.jobs.shares import shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAX_PROBLEMS = 10_000  # that are kept of a partition, and of all; the rest is counted
_TASKS_PER_SLOT = 4  # so that one that is slow keeps nobody waiting for long


class PartitionReport(msgspec.Struct):
    """What one partition's task has found; `found` may be cut short, `problems` counts all."""

    topic: str
    partition: int
    log_end_offset: int
    segments: int
    batches: int
    bytes: int
    problems: int
    found: list[Problem]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the log directory, a copy or a backup of one")
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from pipeline.jobs.running import Summary, spark_for

    partitions_of(ReadOnlyFiles(), arguments.directory)  # it can be read, or Spark need not start
    with spark_for("verify", arguments) as spark:
        summary = Summary("verify")
        outcome, problems = verify(spark, arguments.directory)
    counts = msgspec.to_builtins(outcome)
    sys.stdout.write(msgspec.json.format(msgspec.json.encode({**counts, "found": problems})).decode() + "\n")
    summary.tell(counts, as_json=False)
    return FAILED if outcome.problems else 0


def verify(spark: SparkSession, directory: str) -> tuple[Outcome, list[Problem]]:
    """Check the log directory; the problems are in the order of its partitions. Raises `OSError` if it is none."""
    files = ReadOnlyFiles()
    partitions = partitions_of(files, directory)
    reports = _check_on_workers(spark, directory, partitions)
    reports.sort(key=lambda each: (each.topic, each.partition))
    problems = [problem for report in reports for problem in report.found]
    before = len(problems)
    ends = {(each.topic, each.partition): each.log_end_offset for each in reports}
    check_directory_files(files, directory, ends, problems.append)
    outcome = Outcome(
        partitions=len(reports),
        segments=sum(each.segments for each in reports),
        batches=sum(each.batches for each in reports),
        bytes=sum(each.bytes for each in reports),
        problems=sum(each.problems for each in reports) + len(problems) - before,
    )
    return outcome, problems[:_MAX_PROBLEMS]


def _check_on_workers(
    spark: SparkSession, directory: str, partitions: Sequence[PartitionFiles]
) -> list[PartitionReport]:
    if not partitions:
        return []
    context = spark.sparkContext
    shares = shared_out([(each.size, each.key) for each in partitions], context.defaultParallelism * _TASKS_PER_SLOT)
    answers = (
        context.parallelize(shares, len(shares))
        .flatMap(lambda keys: [msgspec.json.encode(each) for each in check_partitions(directory, keys)])
        .collect()
    )
    return [msgspec.json.decode(answer, type=PartitionReport) for answer in answers]


def check_partitions(directory: str, keys: Sequence[Partition]) -> Iterator[PartitionReport]:
    """On a worker: check these partitions. Raises `OSError` where the worker cannot read them."""
    files = ReadOnlyFiles()
    descriptors = DescriptorCache(files)
    try:
        starts = OffsetCheckpoint(files, directory, LOG_START_OFFSETS).read()
        for key in keys:
            partition = PartitionFiles(files, directory, partition_directory(*key), key)
            yield _check_partition(descriptors, partition, starts.get(key, 0))
    finally:
        descriptors.close()


def _check_partition(descriptors: DescriptorCache, partition: PartitionFiles, start: int) -> PartitionReport:
    report = PartitionReport(*partition.key, 0, 0, 0, 0, 0, [])

    def take(problem: Problem) -> None:
        report.problems += 1
        if len(report.found) < _MAX_PROBLEMS:
            report.found.append(problem)

    def note_progress(size: int) -> None:
        report.bytes += size

    found = PartitionCheck(descriptors, partition, start, take, note_progress).run()
    report.log_end_offset, report.segments, report.batches = found
    return report
