"""`format("broker")`: topics of Apache Kafka, or of this broker, as tables and streams, without a jar.

A job changes one word to move here from Spark's connector, `format("kafka")`, or back: options, columns, offsets in
checkpoints and the handling of data loss are the connector's. Workers must be able to import `odradek.pipeline`.

Modules that only tasks need are imported in tasks: Spark starts a process for each stream that only requests offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import ReadOptions, batch_read_options
from odradek.pipeline.reading.data_loss import report_data_loss
from odradek.pipeline.reading.offsets import ClusterOffsets, ending_offsets, starting_offsets
from odradek.pipeline.reading.ranges import OffsetRange, divide
from odradek.pipeline.schema import column_names, spark_schema
from odradek.pipeline.spark.garbage_collection import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa

    from odradek.pipeline.reading.stream import BrokerStreamReader
    from odradek.pipeline.writing.sink import BrokerStreamWriter, BrokerWriter


class BrokerDataSource(DataSource):
    """The data source that Spark calls."""

    @classmethod
    def name(cls) -> str:
        return "broker"

    def schema(self) -> StructType:
        freeze_modules()
        return spark_schema(column_names(include_headers=self.options.get("includeheaders", "").lower() == "true"))

    def reader(self, schema: StructType) -> BrokerReader:
        freeze_modules()
        return BrokerReader(batch_read_options(self.options), columns_of(schema))

    def streamReader(self, schema: StructType) -> BrokerStreamReader:  # noqa: N802 - Spark's name
        from odradek.pipeline.reading.stream import BrokerStreamReader

        freeze_modules()
        return BrokerStreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BrokerWriter:
        from odradek.pipeline.writing.sink import BrokerWriter

        freeze_modules()
        return BrokerWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> BrokerStreamWriter:  # noqa: ARG002, N802 - Spark's
        from odradek.pipeline.writing.sink import BrokerStreamWriter

        freeze_modules()
        return BrokerStreamWriter(self.options, schema)


class RangePartition(InputPartition):
    """The work of a task: ranges of offsets."""

    def __init__(self, offset_ranges: Sequence[OffsetRange]) -> None:
        super().__init__(offset_ranges)
        self.offset_ranges = offset_ranges


class BrokerReader(DataSourceReader):
    """The reader of a batch. Its ranges are fixed when the query is planned; later records are not read."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with closing(ClusterOffsets(options.cluster, options.isolation_level)) as offsets:
            partitions, topic_ids = offsets.subscribed(options.subscription)
            starts = starting_offsets(offsets, options, partitions)
            ends = ending_offsets(offsets, options, partitions)
        for (topic, index), start in starts.items():
            end = ends[TopicPartition(topic, index)]
            if start > end:  # an error regardless of failOnDataLoss, as in a batch of the connector
                raise ValueError(f"{topic}-{index}: the end offset {end} is below the start offset {start}")
        return plan(
            options, [OffsetRange(one, starts[one], ends[one], topic_ids.get(one.topic, "")) for one in partitions]
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            return iter(())  # Spark creates a partition of its own when there are none
        from odradek.pipeline.reading.partition_reader import read_ranges

        return read_ranges(self._options, self._columns, partition.offset_ranges)


def plan(options: ReadOptions, ranges: list[OffsetRange]) -> list[InputPartition]:
    """Return the tasks that read these ranges. Raises DataLossError for a range that ends before it starts."""
    for topic, index in (one.partition for one in ranges if one.size < 0):
        report_data_loss(options, f"The end of {topic}-{index} is below its start offset.")
    return [RangePartition((one,)) for one in divide(ranges, options.min_partitions, options.max_records)]


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns to read for a schema given by `schema(…)`. Raises ValueError for other columns or types."""
    names = tuple(schema.names)
    known = column_names(include_headers=True)
    if not names or not set(names) <= set(known) or spark_schema(names) != schema:
        raise ValueError(
            f"the columns of this source are {spark_schema(known).simpleString()}, not {schema.simpleString()}"
        )
    return names
