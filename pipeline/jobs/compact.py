"""`compact`: the latest record of each key, with tombstones: the records that the broker's cleaner would keep.

```
log start        first uncleanable offset        log end
    |  compacted: latest of each key  |     not read     |
```
As in the cleaner, keys are compared within a partition, the latest record is the one with the highest offset, records
without a key are dropped, and records of aborted transactions are ignored. Active segments and open transactions are
left out, unless `--whole-log` is given. Topics of brokers are always read to the end, because brokers do not report
their segments. `min.compaction.lag.ms` is taken as 0. Tombstones stay unless `--drop-tombstones` is given, because
`delete.retention.ms` depends on the broker's clock.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from odradek.pipeline.jobs import UsageError
from odradek.pipeline.jobs.arguments import (
    add_json_argument,
    add_output_arguments,
    add_source_arguments,
    add_spark_arguments,
)
from odradek.pipeline.jobs.planned_options import ENDS, ISOLATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY = ("topic", "partition", "key")
_REST = ("value", "offset", "timestamp", "timestampType", "headers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser)
    add_output_arguments(parser)
    parser.add_argument("--whole-log", action="store_true", help="also compact the active segments of --log-dir")
    parser.add_argument(
        "--drop-tombstones", action="store_true", help="leave out keys whose latest record has no value"
    )
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.whole_log and arguments.log_dir is None:
        raise UsageError("--whole-log requires --log-dir: topics of brokers are always read to the end")
    from odradek.pipeline.jobs.early_checks import check_output, check_source
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.results.counting import counted
    from odradek.pipeline.jobs.results.replacement import new_result
    from odradek.pipeline.jobs.results.summary import Summary

    ends_planned = arguments.log_dir is not None and not arguments.whole_log
    check_source(arguments, planned=ISOLATION | ENDS if ends_planned else ISOLATION)
    check_output(arguments)
    with spark_session_for("compact", arguments) as spark:
        summary = Summary("compact")
        with new_result(spark, arguments.output, "compact", overwrite=arguments.overwrite) as output:
            records, read = counted(_records(spark, arguments))
            kept, left = counted(compacted(records, drop_tombstones=arguments.drop_tombstones))
            kept.write.partitionBy("topic").parquet(output)
        summary.print({**read(), "kept": left()["records"]}, as_json=arguments.json)
    return 0


def compacted(records: DataFrame, *, drop_tombstones: bool = False) -> DataFrame:
    """Return the latest record of each key of each partition, with the columns of `records`."""
    from pyspark.sql import functions as f

    rest = [name for name in _REST if name in records.columns]
    latest = (
        records.where(f.col("key").isNotNull())
        .groupBy(*_KEY)
        .agg(f.max_by(f.struct(*rest), f.col("offset")).alias("latest"))
        .select(*_KEY, "latest.*")
        .select(*records.columns)
    )
    return latest.where(f.col("value").isNotNull()) if drop_tombstones else latest


def _records(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    from odradek.pipeline.jobs.source import read_partitions, read_records
    from odradek.pipeline.options.bounds import offsets_json

    options = {"kafka.isolation.level": "read_committed"}
    if arguments.log_dir is None or arguments.whole_log:
        return read_records(spark, arguments, options)
    from odradek.pipeline.jobs.log_directories.log_offsets import read_log_state

    ends = read_log_state(arguments, inactive_only=True).ends
    return read_partitions(spark, arguments, ends, options | {"endingOffsets": offsets_json(ends)})
