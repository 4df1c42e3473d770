"""`replay`: Parquet that was exported goes back into a topic, in the order it had, as fast as is wished.

```
a partition of the export ─► one task: sorted by offset, each record held back until it is due ─► the sink, by key
```
What was in one partition stays in order: one task has it, and sends it with an idempotent producer. So records of a
key are in order, and stay in the same partition if the sink chooses it by the key; `--keep-partitions` takes the number
that they had. Where no partition is known, as of files of other tools (`parquet_records`), a group of keys stands for
one. Each partition gets of `--rate` the share that it has of the records, so that all end together. With a
rate, the process that holds records back also sends them: on their way to a sink, Spark would gather ten thousand.

Timestamps are those of the replay, as Spark's own sink for Kafka has it. A task that failed and is tried again sends
again: at least once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.client.cli.arguments.argument_types import assignment, positive
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.arguments import add_json_argument, add_spark_arguments
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_GROUP = "group"  # the partition, or a number that all records of a key have
_DUE = "due"  # seconds after the beginning
_SLICE = 0.05  # seconds of records that are let go at once; less would make the sink's batches small


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", required=True, metavar="DIR", help="what `export` has written, or Parquet with a column `value`"
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT[,HOST:PORT]", help="the cluster")
    parser.add_argument("--topic", required=True, help="the topic that the records go to")
    parser.add_argument("--from-topic", metavar="NAME", help="only the records of this topic (default: all)")
    parser.add_argument("--rate", type=positive, metavar="N", help="records a second (default: as fast as it goes)")
    parser.add_argument("--keep-partitions", action="store_true", help="send to the partitions that the records had")
    parser.add_argument("--append", action="store_true", help="send to a topic that has records already")
    parser.add_argument(
        "--option", action="append", default=[], type=assignment, metavar="NAME=VALUE", help="an option of the sink"
    )
    parser.add_argument("--connector", choices=("broker", "kafka"), default="broker", help="default: %(default)s")
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs.job_session import spark_for
    from odradek.pipeline.jobs.parquet_records import stored_records
    from odradek.pipeline.jobs.results.counting import counted
    from odradek.pipeline.jobs.results.summary import Summary

    needed = ("topic",) * (arguments.from_topic is not None) + ("partition",) * arguments.keep_partitions
    with spark_for("replay", arguments) as spark:
        summary = Summary("replay")
        if not arguments.append:
            _check_empty(arguments)
        records = stored_records(spark, arguments.input, needed)
        if arguments.from_topic is not None:
            records = records.where(records.topic == arguments.from_topic)
        records = in_order(records, rate=arguments.rate, keep_partitions=arguments.keep_partitions)
        if arguments.connector == "kafka":  # of what this writes, Spark never tells an observation
            counts = {"records": records.count()}
            _send(records, arguments)
        else:
            records, observed = counted(records)
            _send(records, arguments)
            counts = observed()
        summary.tell(counts, as_json=arguments.json)
    return 0


def in_order(records: DataFrame, *, rate: float | None = None, keep_partitions: bool = False) -> DataFrame:
    """Key, value, headers (and partition) in the order of each partition, or of each key where that is null.

    With a `rate`, a last column has the seconds after the beginning at which each is due, to be `held_back` until then.
    Raises `JobError` where some records have no offset.
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
    """How many records each group of each topic has."""
    from pyspark.sql import functions as f

    counts = (f.count(f.lit(1)).alias("records"), f.count("offset").alias("offsets"))
    rows = grouped.groupBy("topic", _GROUP).agg(*counts).collect()
    without = sum(row.records - row.offsets for row in rows)
    if without:
        raise JobError(
            f"{pluralize(without, 'record has', 'records have')} no offset, which others have: there is no order"
        )
    return {(row.topic, row[_GROUP]): row.records for row in rows}


def with_due_times(records: DataFrame, sizes: dict[tuple[str, int], int], rate: float) -> DataFrame:
    """With a column of seconds: groups of these `sizes` begin and end together, `rate` records a second in all."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    duration = sum(sizes.values()) / rate
    rows = [(topic, group, duration / size) for (topic, group), size in sizes.items()]
    pace = records.sparkSession.createDataFrame(rows, f"topic string, {_GROUP} int, interval double")
    number = f.row_number().over(Window.partitionBy("topic", _GROUP).orderBy("offset")) - 1
    return records.join(f.broadcast(pace), ["topic", _GROUP]).withColumn(_DUE, number * f.col("interval"))


def held_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Let each record through when its time has come, counted from the first; its last column says when that is."""
    import numpy as np

    from odradek.pipeline.records.arrow_values import numbers_of

    began = None
    for batch in batches:
        began = began or time.monotonic()  # not earlier: Spark sorts all records before the first comes
        due = numbers_of(batch.column(batch.num_columns - 1))
        records = batch.select(range(batch.num_columns - 1))
        start = 0
        while start < len(due):
            wait = due[start] - (time.monotonic() - began)
            if wait > 0:
                time.sleep(wait)
            stop = int(np.searchsorted(due, time.monotonic() - began + _SLICE))
            stop = max(stop, start + 1)
            yield records.slice(start, stop - start)
            start = stop


def _send(records: DataFrame, arguments: argparse.Namespace) -> None:
    """Send what `in_order` gives, as the flags say."""
    options = {"kafka.bootstrap.servers": arguments.bootstrap_server, "topic": arguments.topic}
    options |= dict(arguments.option)
    if arguments.rate is not None and arguments.connector == "broker":
        sent = records.mapInArrow(lambda batches: send_when_due(options, batches), "sent bigint")
        sent.write.format("noop").mode("overwrite").save()
        return
    if arguments.rate is not None:
        records = records.mapInArrow(held_back, records.drop(_DUE).schema)
    records.write.format(arguments.connector).options(**options).mode("append").save()


def send_when_due(options: dict[str, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: write each record to the topic of `options` when its time has come."""
    from odradek.pipeline.options.broker_options import write_options
    from odradek.pipeline.writing.sink import write_rows

    write_rows(write_options(options), held_back(batches), at_once=True)
    return iter(())


def _check_empty(arguments: argparse.Namespace) -> None:
    """Raise `JobError` if the topic has records, or is not there to be asked."""
    import asyncio

    from odradek.pipeline.jobs.topic_sizes import records_in

    records = asyncio.run(records_in(arguments.bootstrap_server, arguments.topic))
    if records:
        raise JobError(f"{arguments.topic} has about {pluralize(records, 'record')}; --append sends behind them")
