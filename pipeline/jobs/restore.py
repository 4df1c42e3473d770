"""`restore`: the state that a topic holds, as a table with a row for each key, now or at a time in the past.

The state at a time T is made of the records with timestamps up to T: of each key in each partition the one with the
highest offset, unless that is a tombstone. Of a topic that was compacted since then it lacks what a later record of the
same key has superseded; such a key is missing until its record comes. With `min.compaction.lag.ms` a topic keeps the
past for as long as that.

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
    from odradek.pipeline.jobs.job_session import spark_for
    from odradek.pipeline.jobs.results.counting import counted
    from odradek.pipeline.jobs.results.output import check_format, prepare_output
    from odradek.pipeline.jobs.results.summary import Summary
    from odradek.pipeline.jobs.source import read_records

    with spark_for("restore", arguments) as spark:
        summary = Summary("restore")
        check_format(spark, arguments.format)
        prepare_output(spark, arguments.output, overwrite=arguments.overwrite)
        prefix = "" if arguments.log_dir is not None else "kafka."
        records = read_records(spark, arguments, {f"{prefix}isolation.level": "read_committed"})
        records, read = counted(records)
        table, kept = counted(state(records, as_of_ms=arguments.as_of))
        table = as_table(table, key_as=arguments.key_as, value_schema=arguments.value_schema)
        table.write.format(arguments.format).save(arguments.output)
        summary.tell({**read(), "keys": kept()["records"]}, as_json=arguments.json)
    return 0


def state(records: DataFrame, *, as_of_ms: int | None = None) -> DataFrame:
    """Of each key the record that holds at the time `as_of_ms` (inclusive; None: at the end), without tombstones."""
    from pyspark.sql import functions as f

    from odradek.pipeline.jobs.compact import compacted

    if as_of_ms is not None:
        records = records.where(f.col("timestamp") <= f.timestamp_millis(f.lit(as_of_ms)))
    return compacted(records, drop_tombstones=True)


def as_table(records: DataFrame, *, key_as: str = "string", value_schema: str | None = None) -> DataFrame:
    """Records of a state as its table; `value_schema` is the DDL of JSON values, whose fields become columns."""
    from pyspark.sql import functions as f

    where = [name for name in ("topic", "partition", "offset", "timestamp") if name in records.columns]
    key = f.col("key").cast(key_as).alias("key")
    if value_schema is None:
        return records.select(key, "value", *where)
    fields = f.from_json(f.col("value").cast("string"), value_schema).alias("fields")
    return records.select(key, fields, *where).select("key", "fields.*", *where)
