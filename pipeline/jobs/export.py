"""`export`: write topics or a log directory as Parquet; each run adds the records since the last one.

```
OUTPUT/topic=trips/date=2026-11-21/part-….parquet     key, value, partition, offset, timestamp, timestampType, headers
OUTPUT/_checkpoint/                                   progress, and the settings of the export (`export.json`)
```
From brokers the export is a stream with the trigger availableNow. Its checkpoint and the file sink's list of files
ensure that every record is written exactly once, even if a run is killed. A log directory is exported by `export_runs`,
with the same guarantee. `partition_columns` has the columns of `--partition-by`. Spark and other readers of Parquet
ignore names that start with an underscore.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from odradek.client.cli import UsageError
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.arguments import (
    add_json_argument,
    add_output_arguments,
    add_source_arguments,
    add_spark_arguments,
)
from odradek.pipeline.jobs.partition_columns import partition_columns, with_partition_columns
from odradek.pipeline.jobs.planned_options import ENDS, STARTS
from odradek.pipeline.jobs.results.output import FORMATS
from odradek.pipeline.jobs.results.replacement import EXPORT_SETTINGS
from odradek.pipeline.jobs.source import topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.results.filesystem import FileSystem

CHECKPOINT = "_checkpoint"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser)
    add_output_arguments(parser)
    parser.add_argument(
        "--partition-by",
        default="topic,date",
        metavar="COLUMNS",
        help="topic, date, value.FIELD, several with commas, or none (default: %(default)s)",
    )
    parser.add_argument("--format", choices=FORMATS, default="parquet", help="default: %(default)s")
    parser.add_argument(
        "--on-data-loss",
        choices=("fail", "continue"),
        default="fail",
        help="if records were lost, or are not those of the last run: an error, or the records that there are "
        "(default: %(default)s)",
    )
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    columns = partition_columns(arguments.partition_by)
    if arguments.log_dir is not None and arguments.format != "parquet":
        raise UsageError(f"--format {arguments.format} requires --bootstrap-server")
    from odradek.pipeline.jobs.early_checks import check_output, check_source
    from odradek.pipeline.jobs.export_runs import export_log_dir
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.results.filesystem import FileSystem
    from odradek.pipeline.jobs.results.output import check_format
    from odradek.pipeline.jobs.results.replacement import put_aside
    from odradek.pipeline.jobs.results.summary import Summary

    planned = {"failondataloss"} | (STARTS | ENDS if arguments.log_dir is not None else frozenset())
    check_source(arguments, is_stream=True, planned=planned)
    check_output(arguments)
    with spark_session_for("export", arguments) as spark:
        summary = Summary("export")
        check_format(spark, arguments.format)
        files = FileSystem(spark, arguments.output)
        with put_aside(spark, arguments.output, overwrite=arguments.overwrite):
            claim_directory(files, _settings(arguments))
            if arguments.log_dir is not None:
                counts = export_log_dir(spark, arguments, files, columns)
            else:
                counts = _export_topics(spark, arguments, columns)
        summary.print(counts, as_json=arguments.json)
    return 0


def _export_topics(spark: SparkSession, arguments: argparse.Namespace, columns: dict[str, str]) -> dict[str, object]:
    from odradek.pipeline.jobs.results.summary import print_progress
    from odradek.pipeline.jobs.source import read_new_records

    fails = {"failOnDataLoss": str(arguments.on_data_loss == "fail").lower()}
    records = with_partition_columns(read_new_records(spark, arguments, fails), columns)
    writer = records.writeStream.format(arguments.format).trigger(availableNow=True)
    query = (
        writer.option("checkpointLocation", f"{arguments.output.rstrip('/')}/{CHECKPOINT}")
        .partitionBy(*columns)
        .start(arguments.output)
    )
    batches = print_progress(query)
    rows = sum(batch["numInputRows"] for batch in batches)
    return {"records": rows, "batches": sum(1 for batch in batches if batch["numInputRows"])}


def _settings(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return the settings that must not change between runs into one directory."""
    names = ("topic_pattern", "partition_by", "format", "connector")
    source = "log directory" if arguments.log_dir is not None else "brokers"
    topic = None if arguments.topic is None else ",".join(topic_names(arguments.topic))
    # The start of a stream is in its checkpoint after the first run, which would ignore another one.
    starts = {name.lower(): value for name, value in arguments.option if name.lower() in STARTS}
    return {"source": source, "topic": topic, **{name: getattr(arguments, name) for name in names}, **starts}


def claim_directory(files: FileSystem, settings: dict[str, str | None]) -> None:
    """Create the directory of an export with these settings, or check that it has them. Raises `JobError`.

    After a first run that failed before its first record, such as one with a wrong topic, the settings may change.
    """
    names = files.names()
    if files.exists(EXPORT_SETTINGS):
        before = json.loads(files.read(EXPORT_SETTINGS))
        changed = [name for name in settings if settings[name] != before.get(name)]
        if not changed:
            return
        if not _is_without_records(files):
            changes = ", ".join(f"{name} was {before.get(name)}, now {settings[name]}" for name in changed)
            raise JobError(f"{files.directory} was exported with other settings: {changes}; --overwrite replaces it")
        files.delete()
    elif names and not _is_without_records(files):
        raise JobError(f"{files.directory} exists and is not an export")
    files.write(EXPORT_SETTINGS, json.dumps(settings))


def _is_without_records(files: FileSystem) -> bool:
    """Whether a directory has only files of runs that failed, or were killed, before their first record."""
    started = {EXPORT_SETTINGS, f"{EXPORT_SETTINGS}.tmp", f"{CHECKPOINT}/metadata", f"{CHECKPOINT}/commits/0.tmp"}
    return all(path in started or path.startswith("_staging/") for path in files.files())
