"""The columns of `--partition-by`, by which an export is divided into directories, in the given order.

| `--partition-by` | column |
|---|---|
| `topic` | the topic's name |
| `date` | the day of the record's timestamp, in UTC |
| `value.FIELD`, `value.FIELD.FIELD` | a field of a value that is JSON; `FIELD_FIELD` is the column's name |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client.cli import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# As in `odradek.pipeline.schema`, which imports pyarrow; usage errors should not wait for that.
_RECORD_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "_corrupt_record",
)
_VALUE = "value."


def partition_columns(text: str) -> dict[str, str]:
    """Parse `--partition-by` as column → topic, date or the JSON path. Raises `UsageError`."""
    columns: dict[str, str] = {}
    for part in [] if text == "none" else text.split(","):
        part = part.strip()
        if part in ("topic", "date") and part not in columns:
            columns[part] = part
            continue
        field = part.removeprefix(_VALUE)
        column = field.replace(".", "_")
        taken = {name.lower() for name in (*_RECORD_COLUMNS, "date", *columns)}  # Spark ignores case
        if field == part or not column.isidentifier() or column.lower() in taken:
            raise UsageError(f"--partition-by {part}: use topic, date or value.FIELD, and each column once")
        columns[column] = f"$.{field}"
    return columns


def with_partition_columns(records: DataFrame, columns: dict[str, str]) -> DataFrame:
    """Return the records with the additional `columns` that `partition_columns` returned."""
    from pyspark.sql import functions as f

    def column(source: str) -> Column:
        if source == "topic":
            return f.col("topic")
        if source == "date":
            return f.to_date("timestamp")
        return f.get_json_object(f.col("value").cast("string"), source)

    return records.withColumns({name: column(source) for name, source in columns.items()})
