"""The stream: revenue by zone and hour, to Parquet when an hour is complete, and to a compacted topic continuously.

```
python -m pipeline.taxi.revenue --bootstrap-server B --output DIR [--master URL]

DIR/revenue/date=…/      a row for each zone and hour, written when the watermark has passed the hour
DIR/checkpoints/         the checkpoints of both queries
topic revenue            zone|hour → {"zone": …, "hour": …, "cents": …}; the latest value is the sum
```
After all trips, a closing record is sent, which moves the watermark past the last hours, and both queries run again.

Both queries calculate the same sums. The file sink stores each result once, even if the process is killed. The topic
may receive a result twice; it is keyed and compacted, so the state is the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from odradek.argument_parser import ArgumentParser
from odradek.client.cli import fail
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.arguments import add_spark_arguments
from odradek.pipeline.taxi.trips import MAX_LATENESS_S, WINDOW_S, ZONES, closing_event
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIPS = "trips"
REVENUE = "revenue"

WATERMARK_S = 12 * MAX_LATENESS_S  # far more than records are late, because partitions are not read in step

_CONF = [("spark.sql.shuffle.partitions", str(ZONES // 10))]  # there are few sums; Spark's default is 200 state stores
_TRIP = "trip BIGINT, zone STRING, at BIGINT, cents BIGINT"


def parse(records: DataFrame) -> DataFrame:
    """Return the trips in records: trip, zone, cents, and `at` as a timestamp."""
    from pyspark.sql import functions as f

    parsed = records.select(f.from_json(f.col("value").cast("string"), _TRIP).alias("record"))
    return parsed.select("record.*").withColumn("at", f.timestamp_seconds("at"))


def revenue(trips: DataFrame) -> DataFrame:
    """Return zone, hour and cents; the closing record moves the watermark of a stream."""
    from pyspark.sql import functions as f

    return (
        trips.withWatermark("at", f"{WATERMARK_S} seconds")
        .groupBy(f.window("at", f"{WINDOW_S} seconds"), "zone")
        .agg(f.sum("cents").alias("cents"), f.max("trip").alias("trip"))
        .where("trip >= 0")  # after the aggregation, so that closing records move the watermark first
        .select("zone", f.col("window.start").alias("hour"), "cents")
    )


def as_records(totals: DataFrame) -> DataFrame:
    """Return the rows of `revenue` as records of the state topic."""
    from pyspark.sql import functions as f

    hour = f.unix_seconds("hour").alias("hour")
    return totals.select(
        f.concat_ws("|", "zone", hour).cast("binary").alias("key"),
        f.to_json(f.struct("zone", hour, "cents")).cast("binary").alias("value"),
    )


def start_queries(
    spark: SparkSession, bootstrap_server: str, directory: str, per_trigger: int
) -> Iterator[StreamingQuery]:
    """Start both queries; they end when all existing trips have been read, `per_trigger` records at a time.

    Take the second query from the iterator after the first has ended. If two queries over a Python source start at the
    same time, Spark 4.3 may serialize tasks of one while it changes their shared state, and then fails
    (`java.io.OptionalDataException`).
    """
    from pyspark.sql import functions as f

    options = {"kafka.bootstrap.servers": bootstrap_server}
    reader = spark.readStream.format("broker").options(**options, subscribe=TRIPS, startingOffsets="earliest")
    totals = revenue(parse(reader.option("maxOffsetsPerTrigger", str(per_trigger)).load()))
    files = totals.withColumn("date", f.to_date("hour")).writeStream.format("parquet").partitionBy("date")
    files = files.option("path", f"{directory}/revenue").option("checkpointLocation", f"{directory}/checkpoints/files")

    def send(changed: DataFrame, _batch: int) -> None:
        as_records(changed).write.format("broker").options(**options, topic=REVENUE).mode("append").save()

    # In Spark, sinks written in Python support append mode only, so changed sums are written with foreachBatch.
    state = totals.writeStream.foreachBatch(send).outputMode("update")
    state = state.option("checkpointLocation", f"{directory}/checkpoints/state")
    for each in (files.queryName("files"), state.queryName("state")):
        yield each.trigger(availableNow=True).start()


def close_hours(spark: SparkSession, bootstrap_server: str) -> None:
    """Send the record that closes every hour, after the stream has read all others."""
    closing = spark.createDataFrame([(closing_event().key, closing_event().value)], "key binary, value binary")
    options = {"kafka.bootstrap.servers": bootstrap_server, "topic": TRIPS}
    closing.write.format("broker").options(**options).mode("append").save()


def _sum_up(spark: SparkSession, options: argparse.Namespace) -> list[Any]:
    """Run both queries to the end of the topic; return Spark's progress reports of their batches."""
    from odradek.pipeline.jobs.results.summary import print_progress

    queries = start_queries(spark, options.bootstrap_server, options.output, options.per_trigger)  # one after the other
    return [batch for query in queries for batch in print_progress(query)]


def main(arguments: list[str]) -> int:
    """Run both queries to their end; print a line for each batch."""
    from odradek.pipeline.jobs.job_session import spark_session_for
    from odradek.pipeline.jobs.results.summary import print_status

    parser = ArgumentParser(prog="python -m pipeline.taxi.revenue")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--per-trigger", type=int, default=20_000)
    add_spark_arguments(parser)
    options = parser.parse_args(arguments)
    options.conf = [*_CONF, *options.conf]
    try:
        with spark_session_for("taxi", options) as spark:
            batches = _sum_up(spark, options)
            close_hours(spark, options.bootstrap_server)
            batches += _sum_up(spark, options)
    except JobError as error:
        return fail(error)
    dropped = sum(operator["numRowsDroppedByWatermark"] for batch in batches for operator in batch["stateOperators"])
    print_status(f"  {pluralize(dropped, 'record was', 'records were')} later than the watermark allows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
