"""`compact`: the latest record of each key, with tombstones: what the broker's cleaner would leave of a topic.

```
log start        first uncleanable offset        log end
    |  compacted: latest of each key  |  not looked at   |
```
As for the cleaner, keys are those of one partition, the latest is the one with the highest offset, a record without a
key goes, and records of aborted transactions do not count. The segments from the active one on, and what an open
transaction has written, are left out; `--whole-log` takes them, and brokers are always read to the end, since they do
not tell their segments. `min.compaction.lag.ms` and `delete.retention.ms` belong to a broker's clock: the first is
taken for 0, and tombstones stay unless `--drop-tombstones` says that their time is over.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from odradek.pipeline.jobs.arguments import (
    add_json_argument,
    add_output_arguments,
    add_source_arguments,
    add_spark_arguments,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY = ("topic", "partition", "key")
_REST = ("value", "offset", "timestamp", "timestampType", "headers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser)
    add_output_arguments(parser)
    parser.add_argument("--whole-log", action="store_true", help="compact the active segments of --log-dir, too")
    parser.add_argument(
        "--drop-tombstones", action="store_true", help="leave out keys whose latest record has no value"
    )
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs.job_session import spark_for
    from odradek.pipeline.jobs.results.counting import counted
    from odradek.pipeline.jobs.results.output import prepare_output
    from odradek.pipeline.jobs.results.summary import Summary

    with spark_for("compact", arguments) as spark:
        summary = Summary("compact")
        prepare_output(spark, arguments.output, overwrite=arguments.overwrite)
        records, read = counted(_records(spark, arguments))
        kept, left = counted(compacted(records, drop_tombstones=arguments.drop_tombstones))
        kept.write.partitionBy("topic").parquet(arguments.output)
        summary.tell({**read(), "kept": left()["records"]}, as_json=arguments.json)
    return 0


def compacted(records: DataFrame, *, drop_tombstones: bool = False) -> DataFrame:
    """The latest record of each key of each partition, in the columns and order of `records`."""
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
    from odradek.pipeline.jobs.source import read_records
    from odradek.pipeline.options.bounds import offsets_json

    options = {"isolation.level": "read_committed"}
    if arguments.log_dir is None:
        return read_records(spark, arguments, {"kafka.isolation.level": "read_committed"})
    if not arguments.whole_log:
        from odradek.pipeline.jobs.log_directories.log_offsets import log_ranges

        options["endingOffsets"] = offsets_json(log_ranges(arguments, inactive_only=True).ends)
    return read_records(spark, arguments, options)
