"""`format("broker")`: topics of Apache Kafka, or of this broker, as tables and streams, without a jar.

A job changes one word to move here from Spark's connector, `format("kafka")`, or back: options, columns, offsets in
checkpoints and the handling of data loss are the connector's. Workers must be able to import `odradek.pipeline`.

Modules that only tasks need are imported in tasks: Spark starts a process for each stream that only requests offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import ADDRESSES, ReadOptions, batch_read_options
from odradek.pipeline.options.log_filter import LogFilter, log_filter
from odradek.pipeline.options.security_options import check_not_stored
from odradek.pipeline.options.table_options import options_of_creation, options_of_table, schema_of_table
from odradek.pipeline.reading.data_loss import report_data_loss
from odradek.pipeline.reading.grouping import grouped
from odradek.pipeline.reading.offsets import ClusterOffsets, ending_offsets, starting_offsets
from odradek.pipeline.reading.ranges import OffsetRange, divide
from odradek.pipeline.schema import column_names, spark_schema
from odradek.pipeline.spark.garbage_collection import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa

    from odradek.pipeline.reading.stream import BrokerStreamReader
    from odradek.pipeline.writing.sink import BrokerStreamWriter, BrokerWriter

_NO_ADDRESS: Final = (
    "kafka.bootstrap.servers is missing: give the brokers as host:port, separated by commas. INSERT INTO a table is "
    'not supported, because Spark does not pass the options of the table: use df.write.format("broker")'
)


class BrokerDataSource(DataSource):
    """The data source that Spark calls."""

    @classmethod
    def name(cls) -> str:
        return "broker"

    def schema(self) -> StructType:
        freeze_modules()
        include_headers = self.options.get("includeheaders", "").lower() == "true"
        schema = spark_schema(column_names(include_headers=include_headers))
        created = options_of_creation(self.options)
        if created is None:
            return schema
        check_not_stored(created)
        batch_read_options(created)  # a wrong option is an error when the table is created
        return schema_of_table(created, schema)

    def reader(self, schema: StructType) -> BrokerReader:
        freeze_modules()
        options, schema = options_of_table(self.options, schema, ADDRESSES)
        return BrokerReader(batch_read_options(options), columns_of(schema))

    def streamReader(self, schema: StructType) -> BrokerStreamReader:  # noqa: N802 - Spark's name
        from odradek.pipeline.reading.stream import BrokerStreamReader

        freeze_modules()
        return BrokerStreamReader(*options_of_table(self.options, schema, ADDRESSES))

    def writer(self, schema: StructType, overwrite: bool) -> BrokerWriter:
        from odradek.pipeline.writing.sink import BrokerWriter

        freeze_modules()
        if not any(name in self.options for name in ADDRESSES):
            raise ValueError(_NO_ADDRESS)
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
    """The reader of a batch. Its ranges are fixed when the query is planned; later records are not read.

    Filters make ranges smaller, and omit partitions. What they exclude cannot be lost (`data_loss`).
    """

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._filter = LogFilter()

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - Spark's name
        """Store the filters for the plan, and return all of them: Spark applies them again."""
        self._filter = log_filter(filters)
        return filters

    def partitions(self) -> list[InputPartition]:
        options, wanted = self._options, self._filter
        with closing(ClusterOffsets(options.cluster, options.isolation_level)) as offsets:
            partitions, topic_ids = offsets.subscribed(options.subscription)
            start_numbers = options.start.numbers_of(partitions, "starting")
            end_numbers = options.end.numbers_of(partitions, "ending")
            if wanted.is_contradictory:
                return []
            chosen = [one for one in partitions if wanted.matches(one)]
            starts = starting_offsets(offsets, options, {one: start_numbers[one] for one in chosen})
            ends = ending_offsets(offsets, options, {one: end_numbers[one] for one in chosen})
            for (topic, index), start in starts.items():
                end = ends[TopicPartition(topic, index)]
                if start > end:  # an error regardless of failOnDataLoss, as in a batch of the connector
                    raise ValueError(f"{topic}-{index}: the end offset {end} is below the start offset {start}")
            ranges = [OffsetRange(one, starts[one], ends[one], topic_ids.get(one.topic, "")) for one in chosen]
            return plan(options, offsets, narrowed(offsets, ranges, wanted))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            return iter(())  # Spark creates a partition of its own when there are none
        from odradek.pipeline.reading.partition_reader import read_ranges

        return read_ranges(self._options, self._columns, partition.offset_ranges)


def narrowed(offsets: ClusterOffsets, ranges: list[OffsetRange], wanted: LogFilter) -> list[OffsetRange]:
    """Return the parts of ranges outside of which no record matches the filter, without empty ones."""
    found = [
        one._replace(start=max(one.start, wanted.start_offset), end=min(one.end, wanted.end_offset)) for one in ranges
    ]
    found = [one for one in found if one.size > 0]
    if wanted.earliest_ms is None or wanted.earliest_ms < 0:
        return found  # records without a timestamp have -1
    # No earlier record is as late. Without any such record, those that are appended later are not part of the batch.
    firsts = offsets.at({one.partition: wanted.earliest_ms for one in found})
    late = [one._replace(start=max(one.start, firsts[one.partition])) for one in found if firsts[one.partition] >= 0]
    return [one for one in late if one.size > 0]


def plan(options: ReadOptions, offsets: ClusterOffsets, ranges: list[OffsetRange]) -> list[InputPartition]:
    """Return the tasks that read these ranges. Raises DataLossError for a range that ends before it starts."""
    for topic, index in (one.partition for one in ranges if one.size < 0):
        report_data_loss(options, f"The end of {topic}-{index} is below its start offset.")
    parts = divide(ranges, options.min_partitions, options.max_records)
    return [RangePartition(group) for group in grouped(options, offsets, parts)]


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns to read for a schema given by `schema(…)`. Raises ValueError for other columns or types."""
    names = tuple(schema.names)
    known = column_names(include_headers=True)
    if not names or not set(names) <= set(known) or spark_schema(names) != schema:
        raise ValueError(
            f"the columns of this source are {spark_schema(known).simpleString()}, not {schema.simpleString()}"
        )
    return names
