"""`stats`: volume, rates, key skew, lateness and compression of topics, by time window.

| log directory | brokers |
|---|---|
| reads batch headers, and the records of eight batches of each segment | reads every record |
| bytes on disk | bytes of keys and values |
| lateness of batches, by their first record | lateness of records |
| keys and compression from the samples | exact keys; no compression, because readers receive records decompressed |

Rows about keys have `is_estimate`: the count of keys and all shares are those of a part of the records. They are exact
for a log directory, too, if the samples are all of its records.

The lateness of a record is its age compared with the newest record before it in its partition: the watermark that a
stream needs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.client.cli.arguments.times import duration_ms, iso
from odradek.client.cli.output.tables import print_json, print_rows
from odradek.pipeline.jobs import FAILED, JobError, OptionError, UsageError
from odradek.pipeline.jobs.arguments import add_source_arguments, add_spark_arguments
from odradek.pipeline.jobs.planned_options import refuse_flags_of_brokers
from odradek.pipeline.spark.spark_session import check_packages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW_COLUMNS = (
    "topic",
    "window",
    "records",
    "bytes",
    "records_per_second",
    "bytes_per_second",
    "late_share",
    "lateness_p50_ms",
    "lateness_p95_ms",
    "lateness_max_ms",
    "compression_ratio",
    "codecs",
)
KEY_COLUMNS = (
    "topic",
    "keys",
    "is_estimate",
    "keyless_share",
    "top_key",
    "top_1_share",
    "top_10_share",
    "top_100_share",
)

_MAX_WINDOWS = 10_000  # rows that are printed and plotted
_TOP_KEYS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser, needs_topic=False)
    parser.add_argument(
        "--window", type=duration_ms, default=3_600_000, metavar="TIME", help="the window of a row (default: 1h)"
    )
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="write windows.csv, keys.csv and a TOPIC.png for each topic"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs.early_checks import check_log_dir, check_source
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.results.summary import Summary, print_status

    _check(arguments)
    if arguments.log_dir is None:
        check_source(arguments, planned={"includeheaders"})
    else:
        check_log_dir(arguments)
    with spark_session_for("stats", arguments) as spark:
        summary = Summary("stats")
        measured, keys = _measure(spark, arguments)
        windows = window_rows(measured, arguments.window)
        skew = key_rows(keys, None if arguments.log_dir is None else records_by_topic(windows))
        damage = [] if arguments.log_dir is None else damage_in(measured)
    if arguments.json:
        print_json({"windows": windows, "keys": skew})
    else:
        print_rows(WINDOW_COLUMNS, windows, as_json=False)
        print_rows(KEY_COLUMNS, skew, as_json=False)
    if arguments.output is not None:
        from odradek.pipeline.jobs.results.stats_plots import write_report

        for path in write_report(arguments.output, windows, skew):
            print_status(f"wrote {path}")
    counts = {name: sum(row[name] for row in windows) for name in ("records", "bytes")}
    summary.print({"topics": len({row["topic"] for row in windows}), **counts}, as_json=False)
    for text in damage:
        print_status(f"error: {text}")
    return FAILED if damage else 0


def damage_in(batches: DataFrame) -> list[str]:
    """Return the first hundred damages in the result of `stored_batches`."""
    return [row.damage for row in batches.where("damage is not null").select("damage").limit(100).collect()]


def _check(arguments: argparse.Namespace) -> None:
    if arguments.log_dir is None and arguments.topic is None and arguments.topic_pattern is None:
        raise UsageError("--bootstrap-server requires --topic or --topic-pattern")
    refuse_flags_of_brokers(arguments)
    if arguments.log_dir is not None and arguments.option:
        names = ", ".join(name for name, _ in arguments.option)
        raise OptionError(f"{names}: stats has no options for a log directory, because it reads batch headers only")
    if arguments.log_dir is not None and arguments.topic_pattern is not None:
        raise UsageError("--log-dir accepts --topic, but not --topic-pattern")
    if arguments.window == 0:
        raise UsageError("--window must be above 0")
    if arguments.output is None:
        if arguments.overwrite:
            raise UsageError("--overwrite requires --output")
    else:
        check_packages(["matplotlib"])  # before a long job
        written = [*arguments.output.glob("*.csv"), *arguments.output.glob("*.png")]
        if written and not arguments.overwrite:
            raise JobError(f"{arguments.output} contains {written[0].name}; --overwrite replaces it")


def _measure(spark: SparkSession, arguments: argparse.Namespace) -> tuple[DataFrame, DataFrame]:
    if arguments.log_dir is None:
        from odradek.pipeline.jobs.source import read_records

        records = read_records(spark, arguments, {"includeHeaders": "false"})
        return measured_records(records), records.select("topic", "key")
    from pyspark.sql import functions as f

    from odradek.pipeline.jobs.log_directories.stored_batches import stored_batches
    from odradek.pipeline.jobs.source import topic_names

    topics = None if arguments.topic is None else topic_names(arguments.topic)
    batches = stored_batches(spark, arguments.log_dir, topics).persist()
    return batches, batches.where("keys is not null").select("topic", f.explode("keys").alias("key"))


def measured_records(records: DataFrame) -> DataFrame:
    """Return records in the columns of `stored_batches`: each as a batch of one record, not sampled."""
    from pyspark.sql import functions as f

    from odradek.pipeline.jobs.results.counting import size_of_records

    time = f.unix_millis("timestamp")
    nothing = f.lit(None)
    return records.select(
        "topic",
        "partition",
        "offset",
        f.lit(1).cast("bigint").alias("records"),
        size_of_records().cast("bigint").alias("bytes"),
        nothing.cast("string").alias("codec"),
        time.alias("first_timestamp"),
        time.alias("timestamp"),
        nothing.cast("bigint").alias("raw_bytes"),
        nothing.cast("bigint").alias("sampled_bytes"),
    )


def window_rows(measured: DataFrame, window_ms: int) -> list[dict[str, Any]]:
    """Return a row of `WINDOW_COLUMNS` for each topic and window. Raises `JobError` for too many rows."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    before = Window.partitionBy("topic", "partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    lateness = f.greatest(f.coalesce(f.max("timestamp").over(before) - f.col("first_timestamp"), f.lit(0)), f.lit(0))
    rows = (
        measured.where("records > 0")
        .withColumn("lateness", lateness)
        .withColumn("start", f.floor(f.coalesce("timestamp", f.lit(-1)) / window_ms).cast("bigint") * window_ms)
        .groupBy("topic", "start")
        .agg(
            f.sum("records").alias("records"),
            f.sum("bytes").alias("bytes"),
            f.sum(f.when(f.col("lateness") > 0, f.col("records")).otherwise(0)).alias("late"),
            f.percentile("lateness", [0.5, 0.95], f.col("records")).alias("percentiles"),
            f.max("lateness").alias("lateness_max_ms"),
            f.sum("raw_bytes").alias("raw_bytes"),
            f.sum("sampled_bytes").alias("sampled_bytes"),
            f.sort_array(f.collect_set("codec")).alias("codecs"),
        )
        .orderBy("topic", "start")
        .limit(_MAX_WINDOWS + 1)
        .collect()
    )
    if len(rows) > _MAX_WINDOWS:
        raise JobError(f"the result has more than {_MAX_WINDOWS} rows; choose a longer --window")
    return [window_row(row.asDict(), window_ms) for row in rows]


def window_row(found: Mapping[str, Any], window_ms: int) -> dict[str, Any]:
    """Return the row of a window from its sums."""
    seconds = window_ms / 1000
    median, high = found["percentiles"]
    return {
        "topic": found["topic"],
        "window": iso(found["start"]),
        "records": found["records"],
        "bytes": found["bytes"],
        "records_per_second": found["records"] / seconds,
        "bytes_per_second": found["bytes"] / seconds,
        "late_share": found["late"] / found["records"],
        "lateness_p50_ms": round(median),
        "lateness_p95_ms": round(high),
        "lateness_max_ms": found["lateness_max_ms"],
        "compression_ratio": found["raw_bytes"] / found["sampled_bytes"] if found["sampled_bytes"] else None,
        "codecs": found["codecs"],
    }


def records_by_topic(windows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of records of each topic, from the rows of its windows."""
    counts: Counter[str] = Counter()
    for row in windows:
        counts[row["topic"]] += row["records"]
    return counts


def key_rows(keys: DataFrame, totals: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """Return a row of `KEY_COLUMNS` for each topic; `keys` has the columns topic and key, a row for each record.

    If `keys` are samples, `totals` are the numbers of all records.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    counts = keys.groupBy("topic", "key").count()
    by_topic = counts.groupBy("topic").agg(
        f.sum("count").alias("records"),
        f.count("key").alias("keys"),
        f.coalesce(f.sum(f.when(f.col("key").isNull(), f.col("count"))), f.lit(0)).alias("keyless"),
    )
    rank = f.row_number().over(Window.partitionBy("topic").orderBy(f.desc("count"), "key"))
    top = (
        counts.where("key is not null")
        .withColumn("rank", rank)
        .where(f.col("rank") <= _TOP_KEYS)
        .groupBy("topic")
        .agg(f.sort_array(f.collect_list(f.struct("rank", "count", "key"))).alias("top"))
    )
    return [
        key_row(row.asDict(recursive=True), None if totals is None else totals.get(row.topic))
        for row in by_topic.join(top, "topic", "left").orderBy("topic").collect()
    ]


def key_row(found: Mapping[str, Any], total: int | None = None) -> dict[str, Any]:
    """Return the row of a topic's keys; shares are of the records that were read. `top` is for the plot.

    `total` is the number of all records of the topic, if they may be more than were read.
    """
    counts = [each["count"] for each in found["top"] or []]
    records = found["records"]
    first = bytes(found["top"][0]["key"]).decode(errors="backslashreplace") if counts else None
    return {
        "topic": found["topic"],
        "keys": found["keys"],
        "is_estimate": total is not None and records < total,
        "keyless_share": found["keyless"] / records,
        "top_key": first,
        "top_1_share": sum(counts[:1]) / records,
        "top_10_share": sum(counts[:10]) / records,
        "top_100_share": sum(counts) / records,
        "top": [count / records for count in counts],
    }
