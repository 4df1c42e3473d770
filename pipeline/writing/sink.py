"""`write` and `writeStream` of `format("broker")`: rows as records of topics.

| column | type | |
|---|---|---|
| value | binary or string | required |
| key | binary or string | null or no column: a record without a key |
| topic | string | the topic of the record; the option `topic` takes precedence |
| partition | int | null or no column: chosen as Kafka's producer does (`partitioning`) |
| headers | array of struct key string, value binary | null or no column: no headers |

Other columns are ignored, as by Spark's connector. The timestamp of a record is the time at which its batch is encoded.

A task writes its rows in order with an idempotent producer and acks=all (`delivery`), and ends when all records are
acknowledged. When a task or a micro-batch is retried, its records are written again: at least once, as with the
connector. There is no transaction, so readers see records of a batch that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from odradek.pipeline.options.broker_options import WriteOptions, write_options
from odradek.pipeline.records.arrow_values import number_array, number_scalar, numbers_of
from odradek.pipeline.schema import HEADERS, HEADERS_TYPE, spark_schema
from odradek.pipeline.spark.garbage_collection import freeze_modules
from odradek.pipeline.worker_clients import worker_client
from odradek.pipeline.writing.batches import Batches, Rows
from odradek.pipeline.writing.delivery import Delivery
from odradek.pipeline.writing.partitioning import StickyPartitions, partitions_of_keys

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class BrokerWriter(DataSourceArrowWriter):
    """The writer of `df.write`; created on the driver, `write` runs in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise ValueError("mode('overwrite') is not supported: a topic only grows. Use mode('append')")
        self._options = write_options(options)
        check_columns(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._options, iterator)


class BrokerStreamWriter(DataSourceStreamArrowWriter):
    """The writer of `df.writeStream`, the same for each micro-batch."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = write_options(options)
        check_columns(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._options, iterator)


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """Raise ValueError unless rows of this schema can be written."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise ValueError("the column `value` is missing")
    if "topic" not in types and options.topic is None:
        raise ValueError("no topic to write to: give the option topic, or a column of that name")
    for name in ("value", "key"):
        _check_type(types, name, BinaryType, StringType)
    _check_type(types, "topic", StringType)
    _check_type(types, "partition", IntegerType)
    headers = types.get(HEADERS)
    if headers is not None and not _is_headers(headers):
        wanted = spark_schema([HEADERS])[HEADERS].dataType.simpleString()
        raise ValueError(f"column headers must be {wanted}, not {headers.simpleString()}")


def _check_type(types: Mapping[str, DataType], name: str, *allowed: type[DataType]) -> None:
    if name in types and not isinstance(types[name], allowed):
        names = " or ".join(one().simpleString() for one in allowed)
        raise ValueError(f"column {name} must be {names}, not {types[name].simpleString()}")


def _is_headers(given: DataType) -> bool:
    """Whether the type is an array of keys and values, nullable or not."""
    element = given.elementType if isinstance(given, ArrayType) else None
    return isinstance(element, StructType) and [(field.name, field.dataType) for field in element.fields] == [
        ("key", StringType()),
        ("value", BinaryType()),
    ]


def write_rows(
    options: WriteOptions, batches: Iterator[pa.RecordBatch], *, flush_each: bool = False
) -> WriterCommitMessage:
    """Write all rows and wait until they are acknowledged; with `flush_each` after every batch of rows.

    Raises ClientError, ValueError.
    """
    freeze_modules()
    cluster = options.cluster
    with (
        worker_client(cluster.client_config(), cluster.timeout_ms, creates_topics=True) as client,
        closing(Delivery(options, client)) as delivery,
    ):
        rows = _RowWriter(options, delivery)
        for batch in batches:
            rows.add(batch)
            if flush_each:
                rows.finish()
        rows.finish()
    return WriterCommitMessage()


class _RowWriter:
    """The rows of one task, divided by topic and partition."""

    def __init__(self, options: WriteOptions, delivery: Delivery) -> None:
        self._options = options
        self._delivery = delivery
        self._partitions: dict[str, int] = {}
        self._sticky: dict[str, StickyPartitions] = {}
        self._batches = Batches(options, delivery)

    def add(self, batch: pa.RecordBatch) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = _binary(columns.get("key"), batch.num_rows)
        values = _binary(columns["value"], batch.num_rows)
        headers = columns.get(HEADERS)
        rows = Rows(keys, values, None if headers is None else headers.cast(HEADERS_TYPE))
        chosen = columns.get("partition")
        for topic, numbers in self._topics(columns.get("topic"), batch.num_rows):
            of_topic = rows if numbers is None else rows.take(numbers)
            named = chosen if chosen is None or numbers is None else chosen.take(number_array(numbers))
            self._add(topic, of_topic, named)

    def finish(self) -> None:
        """Send all open batches and wait for their acknowledgements; more rows may follow."""
        self._batches.finish()
        self._delivery.flush()

    def _topics(self, column: Any | None, count: int) -> Iterator[tuple[str, Ints | None]]:
        """Yield each topic of the rows, with the numbers of its rows; None stands for all rows."""
        if self._options.topic is not None or not count:
            if count:
                yield self._options.topic or "", None
            return
        assert column is not None, "checked on the driver"
        if column.null_count:
            raise ValueError("a row has no topic: fill the column topic, or give the option topic")
        encoded = column.dictionary_encode()
        if len(encoded.dictionary) == 1:
            yield encoded.dictionary[0].as_py(), None
            return
        indexes = numbers_of(encoded.indices)
        for number, topic in enumerate(encoded.dictionary.to_pylist()):
            yield topic, np.flatnonzero(indexes == number)

    def _add(self, topic: str, rows: Rows, named: Any | None) -> None:
        sizes = rows.sizes()
        self._batches.add(topic, rows, self._choose(topic, rows, named, sizes), sizes)

    def _choose(self, topic: str, rows: Rows, named: Any | None, sizes: Ints) -> Ints:
        count = self._partitions.get(topic)
        if count is None:
            count = self._partitions[topic] = self._delivery.partitions_of(topic)
            self._sticky[topic] = StickyPartitions(count, self._options.batch_bytes)
        partitions = partitions_of_keys(rows.keys, count)
        if rows.keys.null_count:
            without = np.flatnonzero(numbers_of(rows.keys.is_null()))
            partitions[without] = self._sticky[topic].choose(sizes[without])
        if named is not None:
            numbers = numbers_of(named.fill_null(number_scalar(0)))
            partitions = np.where(numbers_of(named.is_valid()), numbers, partitions).astype(np.int64)
            if len(partitions) and not 0 <= partitions.min() <= partitions.max() < count:
                wrong = partitions[(partitions < 0) | (partitions >= count)][0]
                raise ValueError(f"column partition contains {wrong}, but {topic} has partitions 0 to {count - 1}")
        return partitions


def _binary(column: Any | None, count: int) -> Any:
    return pa.nulls(count, pa.binary()) if column is None else column.cast(pa.binary())
