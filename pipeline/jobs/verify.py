"""`verify`: check every checksum, offset and index of a log directory, in Spark tasks.

The checks and their messages are those of `python -m broker verify` (docs/inspect.md). Every worker must see the
directory. Small partitions share a task; one that is larger than a task's share is divided between segments. Large
parts start first.

```
driver                    tasks                               driver
list parts ─► shares ─►   check the segments of each part ─►  join the parts of a partition ─► small files ─► JSON
                          of a whole partition also             if a fault may cross the border of two parts:
                          its small files                       another task checks the whole partition
```
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.small_files_check import check_directory_files
from odradek.broker.inspection.verification import Outcome
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.names import LOG_START_OFFSETS
from odradek.broker.storage.offline.listing import PartitionFiles, list_partitions
from odradek.pipeline.jobs import FAILED
from odradek.pipeline.jobs.arguments import add_spark_arguments
from odradek.pipeline.jobs.log_directories.log_parts import (
    MAX_PROBLEMS,
    Part,
    PartReport,
    check_parts,
    joined_report,
    parts_of,
)
from odradek.pipeline.jobs.log_directories.task_shares import divide, task_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the log directory, a copy or a backup of one")
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.results.summary import Summary

    list_partitions(ReadOnlyFiles(), arguments.directory)  # raises an error before Spark starts
    with spark_session_for("verify", arguments) as spark:
        summary = Summary("verify")
        outcome, problems = verify(spark, arguments.directory)
    counts = msgspec.to_builtins(outcome)
    sys.stdout.write(msgspec.json.format(msgspec.json.encode({**counts, "found": problems})).decode() + "\n")
    summary.print(counts, as_json=False)
    return FAILED if outcome.problems else 0


def verify(spark: SparkSession, directory: str, share_bytes: int | None = None) -> tuple[Outcome, list[Problem]]:
    """Check a log directory; return problems in the order of its partitions. Raises `OSError` if it cannot be read.

    A partition of more than `share_bytes`, by default an even share of a task, is divided between segments.
    """
    files = ReadOnlyFiles()
    partitions = list_partitions(files, directory)
    if share_bytes is None:
        share_bytes = sum(each.size for each in partitions) // task_count(spark)
    parts = [(size, part) for each in partitions for size, part in parts_of(each, share_bytes)]
    reports = _of_partitions(spark, directory, partitions, _check_on_workers(spark, directory, parts))
    problems = [problem for report in reports for problem in report.found]
    before = len(problems)
    ends = {each.part.key: each.outcome.next_offset for each in reports}
    check_directory_files(files, directory, ends, problems.append)
    outcome = Outcome(
        partitions=len(reports),
        segments=sum(each.outcome.segments for each in reports),
        batches=sum(each.outcome.batches for each in reports),
        bytes=sum(each.bytes for each in reports),
        problems=sum(each.problems for each in reports) + len(problems) - before,
    )
    return outcome, problems[:MAX_PROBLEMS]


def _check_on_workers(spark: SparkSession, directory: str, parts: Iterable[tuple[int, Part]]) -> list[PartReport]:
    """Check parts, given with their sizes, in tasks; return their reports in the order of partitions and offsets."""
    shares = divide(parts, task_count(spark))
    if not shares:
        return []
    encoded = (
        spark.sparkContext.parallelize(shares, len(shares))
        .flatMap(lambda share: [msgspec.json.encode(each) for each in check_parts(directory, share)])
        .collect()
    )
    return sorted((msgspec.json.decode(each, type=PartReport) for each in encoded), key=lambda report: report.part)


def _of_partitions(
    spark: SparkSession, directory: str, partitions: list[PartitionFiles], reports: list[PartReport]
) -> list[PartReport]:
    """Join the reports of parts to one for each partition, in order."""
    files = {each.key: each for each in partitions}
    starts = OffsetCheckpoint(ReadOnlyFiles(), directory, LOG_START_OFFSETS).read()
    whole: list[PartReport] = []
    again: list[tuple[int, Part]] = []
    for key, parts in groupby(reports, key=lambda report: report.part.key):
        report = joined_report(list(parts), files[key], starts.get(key, 0))
        if report is None:
            again.append((files[key].size, Part(*key)))
        else:
            whole.append(report)
    return sorted(whole + _check_on_workers(spark, directory, again), key=lambda report: report.part.key)
