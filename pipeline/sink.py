"""`write` and `writeStream` of `format("broker")`: rows become records of topics.

| column | type | |
|---|---|---|
| value | binary or string | needed |
| key | binary or string | null, or without the column: the record has none |
| topic | string | where the record goes; the option `topic` wins over it |
| partition | int | null, or without the column: chosen as Kafka's producer does (`partitioning`) |
| headers | array of struct key string, value binary | likewise |

Other columns are left out, as Spark's connector does. Records have the time of their batch's encoding.

A task writes the rows that it gets, in order, by an idempotent producer with acks=all (`delivery`), and is done when
all are acknowledged. When a task or a micro-batch is repeated, its records are written again: at least once, as the
connector. There is no transaction, so readers see records of a batch that fails.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from client.record import TopicPartition
from pipeline.arrow_values import number_array, number_scalar, numbers_of
from pipeline.delivery import Delivery, Outgoing
from pipeline.encode import encode_batch
from pipeline.options import WriteOptions, write_options
from pipeline.partitioning import StickyPartitions, partitions_of_keys
from pipeline.schema import HEADERS, HEADERS_TYPE, spark_schema
from pipeline.worker_process import spare_collections
from protocol.compression import Codec

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_RECORD_OVERHEAD = 16  # bytes of a record beside its data, about


class BrokerWriter(DataSourceArrowWriter):
    """Of `df.write`; made on the driver, `write` runs in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise ValueError("mode('overwrite') cannot be: a topic only grows. Write with mode('append')")
        self._options = write_options(options)
        check_columns(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._options, iterator)


class BrokerStreamWriter(DataSourceStreamArrowWriter):
    """Of `df.writeStream`; the same for each micro-batch."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = write_options(options)
        check_columns(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._options, iterator)


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """Raise ValueError unless rows of this schema can be written."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise ValueError("there is no column value")
    if "topic" not in types and options.topic is None:
        raise ValueError("nothing says which topic: give the option topic, or a column of that name")
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
    """Whether it is an array of keys and values; what may be null in it does not matter."""
    element = given.elementType if isinstance(given, ArrayType) else None
    return isinstance(element, StructType) and [(field.name, field.dataType) for field in element.fields] == [
        ("key", StringType()),
        ("value", BinaryType()),
    ]


def write_rows(
    options: WriteOptions, batches: Iterator[pa.RecordBatch], *, at_once: bool = False
) -> WriterCommitMessage:
    """Write all rows and wait until they are acknowledged; `at_once`: those of each batch before the next is taken.

    Raises ClientError, ValueError.
    """
    spare_collections()
    delivery = Delivery(options)
    try:
        delivery.open()
        writing = _Writing(options, delivery)
        for batch in batches:
            writing.add(batch)
            if at_once:
                writing.finish()
        writing.finish()
    finally:
        delivery.close()
    return WriterCommitMessage()


class _Rows(NamedTuple):
    """Records of one partition: arrays of the same length."""

    keys: Any
    values: Any
    headers: Any | None

    def slice(self, start: int, count: int) -> _Rows:
        return _Rows(*(None if array is None else array.slice(start, count) for array in self))


class _Writing:
    """One task: gathers the rows of each partition until they make a batch."""

    def __init__(self, options: WriteOptions, delivery: Delivery) -> None:
        self._options = options
        self._delivery = delivery
        self._codec = Codec[options.compression.upper()]
        self._partitions: dict[str, int] = {}
        self._sticky: dict[str, StickyPartitions] = {}
        self._gathered: dict[TopicPartition, tuple[list[_Rows], int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = _binary(columns.get("key"), batch.num_rows)
        values = _binary(columns["value"], batch.num_rows)
        headers = columns.get(HEADERS)
        rows = _Rows(keys, values, None if headers is None else headers.cast(HEADERS_TYPE))
        chosen = columns.get("partition")
        for topic, numbers in self._topics(columns.get("topic"), batch.num_rows):
            of_topic = rows if numbers is None else _taken(rows, numbers)
            named = chosen if chosen is None or numbers is None else chosen.take(number_array(numbers))
            self._add(topic, of_topic, named)

    def finish(self) -> None:
        """Send what is left, and wait for all acknowledgements; more may follow."""
        for partition in list(self._gathered):
            self._send(partition)
        self._delivery.flush()

    def _topics(self, column: Any | None, count: int) -> Iterator[tuple[str, Ints | None]]:
        """The topics of some rows, with the numbers of their rows; None for all rows."""
        if self._options.topic is not None or not count:
            if count:
                yield self._options.topic or "", None
            return
        assert column is not None, "checked on the driver"
        if column.null_count:
            raise ValueError("a row has no topic: fill the column, or give the option topic")
        encoded = column.dictionary_encode()
        if len(encoded.dictionary) == 1:
            yield encoded.dictionary[0].as_py(), None
            return
        indexes = numbers_of(encoded.indices)
        for number, topic in enumerate(encoded.dictionary.to_pylist()):
            yield topic, np.flatnonzero(indexes == number)

    def _add(self, topic: str, rows: _Rows, named: Any | None) -> None:
        sizes = _sizes(rows)
        partitions = self._choose(topic, rows, named, sizes)
        order = np.argsort(partitions, kind="stable")
        taken = _taken(rows, order)
        ordered, sizes = partitions[order], sizes[order]
        bounds = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
        for start, end in pairwise(bounds):
            partition = TopicPartition(topic, int(ordered[start]))
            self._gather(partition, taken.slice(start, end - start), sizes[start:end])

    def _choose(self, topic: str, rows: _Rows, named: Any | None, sizes: Ints) -> Ints:
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
                raise ValueError(f"column partition has {wrong}, and {topic} has partitions 0 to {count - 1}")
        return partitions

    def _gather(self, partition: TopicPartition, rows: _Rows, sizes: Ints) -> None:
        """Put rows beside those that wait, and send as many whole batches as there are."""
        limit = self._options.batch_bytes
        filled = np.cumsum(sizes)
        start = 0
        while start < len(sizes):
            waiting, size = self._gathered.get(partition, ([], 0))
            before = int(filled[start - 1]) if start else 0
            end = max(int(np.searchsorted(filled, before + limit - size, side="right")), start)
            if end == start and not waiting:
                end = start + 1  # a record that is larger than a batch is one
            if end > start:
                self._gathered[partition] = (
                    [*waiting, rows.slice(start, end - start)],
                    size + int(filled[end - 1]) - before,
                )
            if end < len(sizes):
                self._send(partition)
            start = end

    def _send(self, partition: TopicPartition) -> None:
        waiting, _ = self._gathered.pop(partition)
        self._delivery.send(partition, self._outgoing(_joined(waiting), time.time_ns() // 1_000_000))

    def _outgoing(self, rows: _Rows, timestamp: int) -> Outgoing:
        count = len(rows.values)

        def encode(producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
            return encode_batch(
                rows.keys,
                rows.values,
                rows.headers,
                timestamp=timestamp,
                codec=self._codec,
                level=self._options.compression_level,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
            )

        def halves() -> tuple[Outgoing, Outgoing]:
            half = count // 2
            return (
                self._outgoing(rows.slice(0, half), timestamp),
                self._outgoing(rows.slice(half, count - half), timestamp),
            )

        return Outgoing(count, encode, halves if count > 1 else None)


def _binary(column: Any | None, count: int) -> Any:
    return pa.nulls(count, pa.binary()) if column is None else column.cast(pa.binary())


def _taken(rows: _Rows, numbers: Ints) -> _Rows:
    indices = number_array(numbers)
    return _Rows(*(None if array is None else array.take(indices) for array in rows))


def _joined(parts: list[_Rows]) -> _Rows:
    if len(parts) == 1:
        return parts[0]
    return _Rows(*(None if arrays[0] is None else pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)))


def _sizes(rows: _Rows) -> Ints:
    """Bytes of each record, about."""
    sizes = np.full(len(rows.values), _RECORD_OVERHEAD, dtype=np.int64)
    for array in (rows.keys, rows.values):
        sizes += numbers_of(pc.fill_null(pc.binary_length(array), number_scalar(0)))
    if rows.headers is not None and len(rows.headers):
        sizes += rows.headers.values.nbytes // len(rows.headers)
    return sizes
