"""Arrow columns from the positions of fields: Arrow copies the bytes once.

Ascending positions become one Arrow array of binary over the whole data, in which the gaps between fields are elements,
too. Taking every second element leaves the fields.

```
data      … | key | . | value | ……… | key | . | value |        . lengths and other fields
offsets     0     1   2       3     4     5   6       7        key of record i: element 4i, value: 4i + 2
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from odradek.pipeline.records.arrow_values import binary_scalar, boolean_array, number_array
from odradek.pipeline.records.record_fields import HeaderPositions, Positions, RecordFields
from odradek.pipeline.records.varints import Ints
from odradek.pipeline.schema import (
    ARROW_TYPES,
    CORRUPT_RECORD,
    HEADER_TYPE,
    HEADERS,
    HEADERS_TYPE,
    LARGEST_MS,
    SMALLEST_MS,
    arrow_schema,
)
from odradek.protocol.buffer import Buffer

_Rows = Ints | None  # numbers of records; None: all of them
_Column = Callable[[RecordFields, _Rows], Any]


def record_columns(
    fields: RecordFields, names: Sequence[str], topic: str, partition: int, rows: _Rows = None
) -> pa.RecordBatch:
    """Return the named columns of all records, or of the records with the numbers `rows`."""
    count = len(_of(fields.offset, rows))
    same: dict[str, str | int] = {"topic": topic, "partition": partition}
    columns = [_repeated(same[name], count) if name in same else _COLUMNS[name](fields, rows) for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(names))


def _of(values: Any, rows: _Rows) -> Any:
    return values if rows is None else values[rows]


def _repeated(value: str | int, count: int) -> Any:
    return _repeated_often(value, 1 << count.bit_length()).slice(0, count)


@lru_cache(maxsize=4)  # a task reads one partition, in groups of similar size
def _repeated_often(value: str | int, count: int) -> Any:
    if isinstance(value, int):
        return number_array(np.full(count, value, dtype=np.int32))
    return pa.repeat(binary_scalar(value.encode()).cast(pa.string()), count)


def _taken(data: Buffer, positions: Positions, rows: _Rows) -> Any:
    """Return the bytes at the positions of these rows; the positions ascend and do not overlap."""
    count = len(positions.start)
    bounds = np.empty(2 * count, dtype=np.int32)
    bounds[0::2] = positions.start
    bounds[1::2] = positions.end
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    every_second = pa.Array.from_buffers(pa.binary(), max(2 * count - 1, 0), buffers)
    elements = np.arange(0, 2 * count, 2) if rows is None else 2 * rows
    return every_second.take(
        number_array(elements, None if positions.is_null is None else _of(positions.is_null, rows))
    )


def _timestamps(fields: RecordFields, rows: _Rows) -> Any:
    timestamp = _of(fields.timestamp, rows)
    microseconds = number_array(timestamp * 1000, (timestamp < SMALLEST_MS) | (timestamp > LARGEST_MS))
    return microseconds.view(ARROW_TYPES["timestamp"])


def _headers(fields: RecordFields, rows: _Rows) -> Any:
    headers = fields.headers
    if headers is None:
        return pa.nulls(len(_of(fields.offset, rows)), HEADERS_TYPE)
    counts = _of(headers.counts, rows)
    entries = None if rows is None else _entries_of(headers, rows)
    keys = _texts(_taken(fields.data, headers.keys, entries))
    values = _taken(fields.data, headers.values, entries)
    structs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    bounds = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=bounds[1:])
    return pa.ListArray.from_arrays(number_array(bounds), structs, type=HEADERS_TYPE, mask=boolean_array(counts == 0))


def _entries_of(headers: HeaderPositions, rows: Ints) -> Ints:
    """Return the numbers of these rows' headers, counted over all records."""
    counts = headers.counts[rows]
    first = (np.cumsum(headers.counts) - headers.counts)[rows]
    behind = np.cumsum(counts) - counts
    entries: Ints = np.arange(int(counts.sum())) + np.repeat(first - behind, counts)
    return entries


def _texts(keys: Any) -> Any:
    """Return bytes as text; bytes that are not UTF-8 become U+FFFD, as in Java."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode(errors="replace") for key in keys.to_pylist()], pa.string())


_COLUMNS: Final[dict[str, _Column]] = {
    "key": lambda fields, rows: _taken(fields.data, fields.key, rows),
    "value": lambda fields, rows: _taken(fields.data, fields.value, rows),
    "offset": lambda fields, rows: number_array(_of(fields.offset, rows)),
    "timestamp": _timestamps,
    "timestampType": lambda fields, rows: number_array(_of(fields.timestamp_type, rows)),
    HEADERS: _headers,
    CORRUPT_RECORD: lambda fields, rows: pa.nulls(len(_of(fields.offset, rows)), pa.string()),
}
