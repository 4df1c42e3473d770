"""`replay`: send exported Parquet to a topic, in the original order and at a chosen rate.

```
a partition of the export ─► one task: sorts by offset, delays each record until it is due ─► the sink, by key
```
The records of one partition stay in order: one task sends them with an idempotent producer. Records of a key therefore
stay in order and in one partition if the sink chooses the partition by the key; `--keep-partitions` uses the original
partition. If no partition is known, as in files of other tools (`parquet_records`), a group of keys takes its place.
Each partition gets a share of `--rate` in proportion to its records, so that all end together. With a rate, the process
that delays records also sends them: between a delay and a sink, Spark would gather ten thousand records.

Timestamps are those of the replay, as with Spark's own Kafka sink. A task that is retried sends its records again: at
least once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.client.cli.arguments.argument_types import assignment, positive
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.arguments import add_command_config_argument, add_json_argument, add_spark_arguments
from odradek.pipeline.jobs.source import client_options
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_GROUP = "group"  # the partition, or a hash of the key
_DUE = "due"  # seconds after the start
_SLICE = 0.05  # seconds of records that are sent together; less makes the sink's batches small


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", required=True, metavar="DIR", help="the output of `export`, or Parquet with a column `value`"
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT[,HOST:PORT]", help="the cluster")
    parser.add_argument("--topic", required=True, help="the topic to send to")
    parser.add_argument("--from-topic", metavar="NAME", help="only the records of this topic (default: all)")
    parser.add_argument("--rate", type=positive, metavar="N", help="records a second (default: no limit)")
    parser.add_argument("--keep-partitions", action="store_true", help="send each record to its original partition")
    parser.add_argument("--append", action="store_true", help="allow a topic that has records already")
    parser.add_argument(
        "--option", action="append", default=[], type=assignment, metavar="NAME=VALUE", help="an option of the sink"
    )
    add_command_config_argument(parser)
    parser.add_argument("--connector", choices=("broker", "kafka"), default="broker", help="default: %(default)s")
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs.early_checks import check_sink
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.parquet_records import stored_records
    from odradek.pipeline.jobs.results.counting import counted
    from odradek.pipeline.jobs.results.summary import Summary

    needed = ("topic",) * (arguments.from_topic is not None) + ("partition",) * arguments.keep_partitions
    check_sink(arguments)
    if not arguments.append:
        _check_empty(arguments)
    with spark_session_for("replay", arguments) as spark:
        summary = Summary("replay")
        records = stored_records(spark, arguments.input, needed)
        if arguments.from_topic is not None:
            records = records.where(records.topic == arguments.from_topic)
        records = in_order(records, rate=arguments.rate, keep_partitions=arguments.keep_partitions)
        if arguments.connector == "kafka":  # Spark does not report observations of what this connector writes
            counts = {"records": records.count()}
            _send(records, arguments)
        else:
            records, observed = counted(records)
            _send(records, arguments)
            counts = observed()
        summary.print(counts, as_json=arguments.json)
    return 0


def in_order(records: DataFrame, *, rate: float | None = None, keep_partitions: bool = False) -> DataFrame:
    """Return key, value, headers (and partition) in the order of each partition, or of each key without a partition.

    With a `rate`, the last column is the time at which a record is due, in seconds after the start, for
    `delay_until_due`. Raises `JobError` if some records have no offset.
    """
    from pyspark.sql import functions as f

    columns = ["key", "value", "headers", *(["partition"] if keep_partitions else [])]
    processors = records.sparkSession.sparkContext.defaultParallelism
    grouped = records.withColumn(_GROUP, f.coalesce("partition", f.pmod(f.hash("key"), f.lit(processors))))
    sizes = _sizes(grouped)
    tasks = max(min(len(sizes), processors), 1)
    shared = grouped.repartition(tasks, "topic", _GROUP)
    if rate is None:
        return shared.sortWithinPartitions("topic", _GROUP, "offset").select(*columns)
    due = with_due_times(shared, sizes, rate)
    return due.sortWithinPartitions(_DUE, "topic", _GROUP).select(*columns, _DUE)


def _sizes(grouped: DataFrame) -> dict[tuple[str, int], int]:
    """Return the number of records of each group of each topic."""
    from pyspark.sql import functions as f

    counts = (f.count(f.lit(1)).alias("records"), f.count("offset").alias("offsets"))
    rows = grouped.groupBy("topic", _GROUP).agg(*counts).collect()
    without = sum(row.records - row.offsets for row in rows)
    if without:
        raise JobError(
            f"{pluralize(without, 'record has', 'records have')} no offset, but others have one: the order is unknown"
        )
    return {(row.topic, row[_GROUP]): row.records for row in rows}


def with_due_times(records: DataFrame, sizes: dict[tuple[str, int], int], rate: float) -> DataFrame:
    """Add the due times, in seconds: all groups start and end together, with `rate` records a second in all."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    duration = sum(sizes.values()) / rate
    rows = [(topic, group, duration / size) for (topic, group), size in sizes.items()]
    pace = records.sparkSession.createDataFrame(rows, f"topic string, {_GROUP} int, interval double")
    number = f.row_number().over(Window.partitionBy("topic", _GROUP).orderBy("offset")) - 1
    return records.join(f.broadcast(pace), ["topic", _GROUP]).withColumn(_DUE, number * f.col("interval"))


def delay_until_due(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each record when it is due: the last column, in seconds after the first record."""
    import numpy as np

    from odradek.pipeline.records.arrow_values import numbers_of

    start_time = None
    for batch in batches:
        start_time = start_time or time.monotonic()  # Spark has sorted all records by now
        due = numbers_of(batch.column(batch.num_columns - 1))
        records = batch.select(range(batch.num_columns - 1))
        start = 0
        while start < len(due):
            wait = due[start] - (time.monotonic() - start_time)
            if wait > 0:
                time.sleep(wait)
            stop = int(np.searchsorted(due, time.monotonic() - start_time + _SLICE))
            stop = max(stop, start + 1)
            yield records.slice(start, stop - start)
            start = stop


def sink_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the flags as options of the connector."""
    options = {"kafka.bootstrap.servers": arguments.bootstrap_server, "topic": arguments.topic}
    return options | client_options(arguments) | dict(arguments.option)


def _send(records: DataFrame, arguments: argparse.Namespace) -> None:
    """Send the result of `in_order` with the options of the command line."""
    options = sink_options(arguments)
    if arguments.rate is not None and arguments.connector == "broker":
        sent = records.mapInArrow(lambda batches: send_when_due(options, batches), "sent bigint")
        sent.write.format("noop").mode("overwrite").save()
        return
    if arguments.rate is not None:
        records = records.mapInArrow(delay_until_due, records.drop(_DUE).schema)
    records.write.format(arguments.connector).options(**options).mode("append").save()


def send_when_due(options: dict[str, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write each record to the topic of `options` when it is due, in a task."""
    from odradek.pipeline.options.broker_options import write_options
    from odradek.pipeline.writing.sink import write_rows

    write_rows(write_options(options), delay_until_due(batches), flush_each=True)
    return iter(())


def _check_empty(arguments: argparse.Namespace) -> None:
    """Raise `JobError` if the topic has records or does not exist."""
    import asyncio

    from odradek.pipeline.jobs.topic_sizes import count_records
    from odradek.pipeline.options.broker_options import Cluster, write_options

    try:
        cluster = write_options(sink_options(arguments)).cluster
    except ValueError:  # options of Spark's connector that this client lacks
        cluster = Cluster(arguments.bootstrap_server, {}, 0)
    records = asyncio.run(count_records(cluster, arguments.topic))
    if records:
        raise JobError(f"{arguments.topic} has about {pluralize(records, 'record')}; --append sends to it anyway")
