"""The options of a table of a catalog: `CREATE TABLE t USING broker OPTIONS (…)`, or klog.

Spark passes the options to a data source written in Python when the table is created, and not when it is queried. But
it stores the schema that the source returns, with the metadata of its columns, and a query gets that schema. So the
options go into the metadata of the first column:

```
CREATE TABLE ─► schema() with `provider`, `location`, `option.NAME` of every other option ─► catalog: schema, metadata
SELECT       ─► reader(schema), streamReader(schema) without options ─► the options in the metadata
```
`location` is the option `path` or the clause LOCATION, as a URI without escapes. Options of the query itself (`SELECT …
FROM t WITH (NAME = VALUE)`) override those of the table. A query that names its source, brokers or a directory, is no
query of a table, so a schema that was copied from one has no effect on it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

_METADATA: Final = "odradek.options"
_PREFIX: Final = "option."  # Spark's TableCatalog.OPTION_PREFIX; also PROP_PROVIDER and PROP_LOCATION
_PROVIDER: Final = "provider"
_LOCATION: Final = "location"


def options_of_creation(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of CREATE TABLE; None if `options` are those of a query."""
    if _PROVIDER not in options:
        return None
    given = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
    return given | ({"path": options[_LOCATION]} if _LOCATION in options else {})


def schema_of_table(options: Mapping[str, str], schema: StructType) -> StructType:
    """Return the schema for a catalog, with the options of CREATE TABLE."""
    first, *others = schema.fields
    return StructType([_field(first, {_METADATA: json.dumps(options)}), *others])


def options_of_table(
    options: Mapping[str, str], schema: StructType, source: Collection[str]
) -> tuple[dict[str, str], StructType]:
    """Return the options of a query, and its schema without metadata. `source` are the options that name its source."""
    plain = StructType([_field(field, {}) for field in schema.fields])
    stored: dict[str, str] = {}
    if not any(name in options for name in source):
        for field in schema.fields:
            stored |= json.loads(field.metadata.get(_METADATA, "{}"))
    return stored | dict(options), plain


def _field(field: StructField, metadata: dict[str, str]) -> StructField:
    return StructField(field.name, field.dataType, field.nullable, metadata)
