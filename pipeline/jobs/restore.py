"""`restore`: the state of a keyed topic as a table with one row a key, now or at a time in the past.

The state at a time T consists of the records with timestamps up to T: for each key of each partition the one with the
highest offset, unless it is a tombstone. If the topic was compacted after T, a key whose record was superseded later is
missing. `min.compaction.lag.ms` is how long a topic keeps superseded records.

```
key | value (or its fields, by --value-schema) | partition | offset | timestamp
```
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from odradek.client.cli.arguments.times import timestamp
from odradek.pipeline.jobs.arguments import (
    add_json_argument,
    add_output_arguments,
    add_source_arguments,
    add_spark_arguments,
)
from odradek.pipeline.jobs.planned_options import ISOLATION
from odradek.pipeline.jobs.results.output import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser)
    add_output_arguments(parser)
    parser.add_argument(
        "--as-of", type=timestamp, metavar="TIME", help="the state at this time: ms, ISO 8601 or -1h (default: the end)"
    )
    parser.add_argument(
        "--value-schema",
        metavar="DDL",
        help="values are JSON with these fields, each a column: 'zone STRING, cents BIGINT'",
    )
    parser.add_argument("--key-as", choices=("binary", "string"), default="string", help="default: %(default)s")
    parser.add_argument("--format", choices=FORMATS, default="parquet", help="default: %(default)s")
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs.early_checks import check_output, check_source
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.results.counting import counted
    from odradek.pipeline.jobs.results.output import check_format
    from odradek.pipeline.jobs.results.replacement import new_result
    from odradek.pipeline.jobs.results.summary import Summary
    from odradek.pipeline.jobs.source import read_records

    check_source(arguments, planned=ISOLATION)
    check_output(arguments)
    with spark_session_for("restore", arguments) as spark:
        summary = Summary("restore")
        check_format(spark, arguments.format)
        with new_result(spark, arguments.output, "restore", overwrite=arguments.overwrite) as output:
            records = read_records(spark, arguments, {"kafka.isolation.level": "read_committed"})
            records, read = counted(records)
            table, kept = counted(state(records, as_of_ms=arguments.as_of))
            table = as_table(table, key_as=arguments.key_as, value_schema=arguments.value_schema)
            table.write.format(arguments.format).save(output)
        summary.print({**read(), "keys": kept()["records"]}, as_json=arguments.json)
    return 0


def state(records: DataFrame, *, as_of_ms: int | None = None) -> DataFrame:
    """Return the record of each key at the time `as_of_ms` (inclusive; None: the end), without tombstones."""
    from pyspark.sql import functions as f

    from odradek.pipeline.jobs.compact import compacted

    if as_of_ms is not None:
        records = records.where(f.col("timestamp") <= f.timestamp_millis(f.lit(as_of_ms)))
    return compacted(records, drop_tombstones=True)


def as_table(records: DataFrame, *, key_as: str = "string", value_schema: str | None = None) -> DataFrame:
    """Return a state as a table; `value_schema` is the DDL of JSON values, whose fields become columns."""
    from pyspark.sql import functions as f

    place = [name for name in ("topic", "partition", "offset", "timestamp") if name in records.columns]
    key = f.col("key").cast(key_as).alias("key")
    if value_schema is None:
        return records.select(key, "value", *place)
    fields = f.from_json(f.col("value").cast("string"), value_schema).alias("fields")
    return records.select(key, fields, *place).select("key", "fields.*", *place)
