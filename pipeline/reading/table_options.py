"""The options of a table of a catalog: `CREATE TABLE t USING broker OPTIONS (…)`.

Spark passes the options to a data source written in Python when the table is created, and not when it is queried. But
it stores the schema that the source returns, with the metadata of its columns, and a query gets that schema. So the
options go into the metadata of the first column:

```
CREATE TABLE ─► schema() with `option.NAME` of every option ─► catalog: schema and metadata
SELECT       ─► reader(schema), streamReader(schema) without options ─► the options in the metadata
```
Options of the query itself (`SELECT … FROM t WITH (NAME = VALUE)`) override those of the table. A query that has the
addresses of brokers is no query of a table, so a schema that was copied from one has no effect on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from odradek.pipeline.options.broker_options import batch_read_options

_METADATA: Final = "odradek.options"
_PREFIX: Final = "option."  # Spark's TableCatalog.OPTION_PREFIX
_ADDRESSES: Final = ("kafka.bootstrap.servers", "bootstrap.servers")


def schema_of_table(options: Mapping[str, str], schema: StructType) -> StructType:
    """Return the schema for a catalog, with the options of CREATE TABLE; otherwise the schema itself.

    Raises ValueError if a batch could not be read with the options.
    """
    stored = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
    if not stored:
        return schema
    batch_read_options(stored)
    first, *others = schema.fields
    return StructType([_field(first, {_METADATA: json.dumps(stored)}), *others])


def options_of_table(options: Mapping[str, str], schema: StructType) -> tuple[dict[str, str], StructType]:
    """Return the options of a query, and its schema without metadata."""
    plain = StructType([_field(field, {}) for field in schema.fields])
    stored: dict[str, str] = {}
    if not any(name in options for name in _ADDRESSES):
        for field in schema.fields:
            stored |= json.loads(field.metadata.get(_METADATA, "{}"))
    return stored | dict(options), plain


def _field(field: StructField, metadata: dict[str, str]) -> StructField:
    return StructField(field.name, field.dataType, field.nullable, metadata)
