"""The stream: revenue by zone and hour, to Parquet when an hour is closed, and to a compacted topic as it grows.

```
python -m pipeline.taxi.revenue --bootstrap-server B --output DIR [--master URL]

DIR/revenue/date=…/      a row for each zone and hour, written once the watermark has passed the hour
DIR/checkpoints/         where both queries go on
topic revenue            zone|hour → {"zone": …, "hour": …, "cents": …}, the latest value of each is the sum so far
```
When all trips have been summed up, a record is sent that closes the last hours, and both queries go on for it.

Two queries with the same sums. The file sink takes each result once, whenever the process is killed. The topic may get
a result twice; it is keyed and compacted, so what holds is the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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

WATERMARK_S = 12 * MAX_LATENESS_S  # far more than records are late, for partitions are not read quite in step

_CONF = [("spark.sql.shuffle.partitions", str(ZONES // 10))]  # the sums are few; Spark's default is 200 stores of them
_TRIP = "trip BIGINT, zone STRING, at BIGINT, cents BIGINT"


def parse(records: DataFrame) -> DataFrame:
    """The trips in the records of their topic: trip, zone, cents, and `at` as a timestamp."""
    from pyspark.sql import functions as f

    parsed = records.select(f.from_json(f.col("value").cast("string"), _TRIP).alias("record"))
    return parsed.select("record.*").withColumn("at", f.timestamp_seconds("at"))


def revenue(trips: DataFrame) -> DataFrame:
    """Zone, hour and cents; in a stream with a watermark, which the closing records move."""
    from pyspark.sql import functions as f

    return (
        trips.withWatermark("at", f"{WATERMARK_S} seconds")
        .groupBy(f.window("at", f"{WINDOW_S} seconds"), "zone")
        .agg(f.sum("cents").alias("cents"), f.max("trip").alias("trip"))
        .where("trip >= 0")  # of a sum, so that Spark does not drop the closing records before they move the watermark
        .select("zone", f.col("window.start").alias("hour"), "cents")
    )


def as_records(totals: DataFrame) -> DataFrame:
    """The rows of `revenue` as records of the state topic."""
    from pyspark.sql import functions as f

    hour = f.unix_seconds("hour").alias("hour")
    return totals.select(
        f.concat_ws("|", "zone", hour).cast("binary").alias("key"),
        f.to_json(f.struct("zone", hour, "cents")).cast("binary").alias("value"),
    )


def start_queries(
    spark: SparkSession, bootstrap_server: str, directory: str, per_trigger: int
) -> Iterator[StreamingQuery]:
    """Start both queries; they end when all trips that are there have been read, `per_trigger` records at a time.

    The second starts when it is asked for. To be asked for when the first has ended: of two queries over a source in
    Python that start at once, Spark 4.3 may send one's tasks out while it changes what both share, and they cannot be
    read (`java.io.OptionalDataException`).
    """
    from pyspark.sql import functions as f

    options = {"kafka.bootstrap.servers": bootstrap_server}
    reader = spark.readStream.format("broker").options(**options, subscribe=TRIPS, startingOffsets="earliest")
    totals = revenue(parse(reader.option("maxOffsetsPerTrigger", str(per_trigger)).load()))
    files = totals.withColumn("date", f.to_date("hour")).writeStream.format("parquet").partitionBy("date")
    files = files.option("path", f"{directory}/revenue").option("checkpointLocation", f"{directory}/checkpoints/files")

    def send(changed: DataFrame, _batch: int) -> None:
        as_records(changed).write.format("broker").options(**options, topic=REVENUE).mode("append").save()

    # Spark lets a sink that is written in Python only append, so changed sums go out batch by batch.
    state = totals.writeStream.foreachBatch(send).outputMode("update")
    state = state.option("checkpointLocation", f"{directory}/checkpoints/state")
    for each in (files.queryName("files"), state.queryName("state")):
        yield each.trigger(availableNow=True).start()


def close_hours(spark: SparkSession, bootstrap_server: str) -> None:
    """Send the record that closes every hour; to be sent when the stream has read all others."""
    closing = spark.createDataFrame([(closing_event().key, closing_event().value)], "key binary, value binary")
    options = {"kafka.bootstrap.servers": bootstrap_server, "topic": TRIPS}
    closing.write.format("broker").options(**options).mode("append").save()


def _sum_up(spark: SparkSession, options: argparse.Namespace) -> list[Any]:
    """Run both queries to the end of the topic, and return what Spark tells of their batches."""
    from odradek.pipeline.jobs.results.summary import follow

    queries = start_queries(spark, options.bootstrap_server, options.output, options.per_trigger)  # one after the other
    return [batch for query in queries for batch in follow(query)]


def main(arguments: list[str]) -> int:
    """Run both queries to their end, and say of each batch that it is done."""
    from odradek.pipeline.jobs.job_session import spark_for
    from odradek.pipeline.jobs.results.summary import say

    parser = argparse.ArgumentParser(prog="python -m pipeline.taxi.revenue")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--per-trigger", type=int, default=20_000)
    add_spark_arguments(parser)
    options = parser.parse_args(arguments)
    options.conf = [*_CONF, *options.conf]
    try:
        with spark_for("taxi", options) as spark:
            batches = _sum_up(spark, options)
            close_hours(spark, options.bootstrap_server)
            batches += _sum_up(spark, options)
    except JobError as error:
        return fail(error)
    dropped = sum(operator["numRowsDroppedByWatermark"] for batch in batches for operator in batch["stateOperators"])
    say(f"  {pluralize(dropped, 'record was', 'records were')} later than the watermark allows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
