"""`format("klog")`: the segment files of a log directory as a Spark table, read in parallel and without a broker.

```python
spark.read.format("klog").option("subscribe", "orders").load("/var/lib/kafka")
```

Tasks open the files by the driver's paths, so on a cluster all machines must share the directory. `options` lists the
options; `segments` says what is read of a directory that a broker is writing. Spark does not report which columns a
query needs: `.schema("value binary")` names them, and the others are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

from odradek.pipeline.klog.options import KlogOptions, klog_options
from odradek.pipeline.klog.piece_reader import joined, read_pieces
from odradek.pipeline.klog.plan import plan
from odradek.pipeline.klog.tasks import KlogTask
from odradek.pipeline.options.log_filter import LogFilter, log_filter
from odradek.pipeline.options.table_options import options_of_creation, options_of_table, schema_of_table
from odradek.pipeline.records.damage import Mode
from odradek.pipeline.schema import ARROW_TYPES, column_names, spark_schema
from odradek.pipeline.spark.garbage_collection import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa

_WRITES: Final = 'format("klog") only reads, because a broker owns the files: write to the topic by format("broker")'
_STREAMS: Final = 'format("klog") has no streams: use spark.read, or a stream of format("broker")'


class KlogDataSource(DataSource):
    """The data source that Spark calls."""

    @classmethod
    def name(cls) -> str:
        return "klog"

    def schema(self) -> StructType:
        freeze_modules()
        created = options_of_creation(self.options)
        options = klog_options(self.options if created is None else created)
        include_corrupt = options.mode is Mode.PERMISSIVE
        schema = spark_schema(column_names(include_headers=options.include_headers, include_corrupt=include_corrupt))
        return schema if created is None else schema_of_table(created, schema)

    def reader(self, schema: StructType) -> KlogReader:
        freeze_modules()
        options, schema = options_of_table(self.options, schema, ("path",))
        return KlogReader(klog_options(options), _columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        raise UnsupportedOperation(_WRITES)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, N802 - Spark's name
        raise UnsupportedOperation(_WRITES)

    def streamReader(self, schema: StructType) -> NoStreamReader:  # noqa: ARG002, N802 - Spark's name
        return NoStreamReader()


class NoStreamReader(DataSourceStreamReader):
    """A reader that refuses every stream. Spark loses the text of an exception before its first call."""

    def initialOffset(self) -> NoReturn:  # noqa: N802 - Spark's name
        raise UnsupportedOperation(_STREAMS)

    def read(self, partition: InputPartition) -> NoReturn:  # noqa: ARG002
        raise UnsupportedOperation(_STREAMS)


class KlogReader(DataSourceReader):
    """The reader of a query: `partitions` runs on the driver, `read` in tasks."""

    def __init__(self, options: KlogOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._filter = LogFilter()

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - Spark's name
        """Store the filters for the plan, and return all of them: Spark applies them again."""
        self._filter = log_filter(filters)
        return filters

    def partitions(self) -> list[KlogTask]:
        return plan(self._options, self._filter)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task. Raises CorruptRecordsError under FAILFAST, SegmentGoneError, OSError."""
        freeze_modules()
        if not isinstance(partition, KlogTask):
            return  # Spark creates a partition of its own when there are none
        yield from joined(read_pieces(partition.pieces, self._options, self._columns))


def _columns(schema: Any) -> tuple[str, ...]:
    """Return the names of the columns of a query. Raises ValueError for an unknown name or another type."""
    names = tuple(schema.names)
    for name in names:
        if name not in ARROW_TYPES:
            raise ValueError(f"{name!r} is not a column of records: choose from {', '.join(ARROW_TYPES)}")
        expected = spark_schema([name])[name].dataType
        if schema[name].dataType != expected:
            raise ValueError(
                f"column {name} must be {expected.simpleString()}, not {schema[name].dataType.simpleString()}"
            )
    return names
