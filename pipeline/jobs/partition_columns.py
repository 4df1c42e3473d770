"""What `--partition-by` makes directories of: any of these, in the order in which they are given.

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

# As in `odradek.pipeline.schema`, which imports pyarrow; a mistake on the command line need not wait for that.
_OF_RECORDS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_VALUE = "value."


def partition_columns(text: str) -> dict[str, str]:
    """What `--partition-by` says, as column → topic, date or the JSON path. Raises `UsageError`."""
    columns: dict[str, str] = {}
    for part in [] if text == "none" else text.split(","):
        part = part.strip()
        if part in ("topic", "date"):
            columns[part] = part
            continue
        field = part.removeprefix(_VALUE)
        column = field.replace(".", "_")
        if field == part or not column.isidentifier() or column in columns or column in (*_OF_RECORDS, "date"):
            raise UsageError(
                f"--partition-by {part}: it is topic, date or value.FIELD, and each gives a column of its own"
            )
        columns[column] = f"$.{field}"
    return columns


def with_partition_columns(records: DataFrame, columns: dict[str, str]) -> DataFrame:
    """The records with a column for each of `columns`, as `partition_columns` gives them."""
    from pyspark.sql import functions as f

    def column(source: str) -> Column:
        if source == "topic":
            return f.col("topic")
        if source == "date":
            return f.to_date("timestamp")
        return f.get_json_object(f.col("value").cast("string"), source)

    return records.withColumns({name: column(source) for name, source in columns.items()})
