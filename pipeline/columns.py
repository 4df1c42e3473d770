"""Arrow columns of records, made of where their fields lie: the bytes are copied once, by Arrow.

Places that ascend are one Arrow array of binary over the whole data, with the gaps between them as elements of their
own; taking every other element leaves the fields.

```
data      … | key | . | value | ……… | key | . | value |        . lengths and other fields in between
offsets     0     1   2       3     4     5   6       7        key of record i: element 4i, value: 4i + 2
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pipeline.arrow_values import binary_scalar, boolean_array, number_array
from pipeline.record_fields import HeaderPlaces, Places, RecordFields
from pipeline.schema import ARROW_TYPES, CORRUPT_RECORD, HEADER_TYPE, HEADERS, HEADERS_TYPE, arrow_schema
from pipeline.varints import Ints
from protocol.primitives import Buffer

_LARGEST_MS: Final = ((1 << 63) - 1) // 1000
_Column = Callable[[RecordFields, Ints], Any]


def record_columns(
    fields: RecordFields, names: Sequence[str], topic: str, partition: int, chosen: Ints | None = None
) -> pa.RecordBatch:
    """The columns named, of all records or of those `chosen` by number."""
    rows = np.arange(len(fields.offset)) if chosen is None else chosen
    makers: dict[str, _Column] = _COLUMNS | {
        "topic": lambda _, rows: pa.repeat(binary_scalar(topic.encode()).cast(pa.string()), len(rows)),
        "partition": lambda _, rows: number_array(np.full(len(rows), partition, dtype=np.int32)),
    }
    return pa.RecordBatch.from_arrays([makers[name](fields, rows) for name in names], schema=arrow_schema(names))


def _taken(data: Buffer, places: Places, rows: Ints) -> Any:
    """The bytes at the places of these rows; the places ascend and do not overlap."""
    count = len(places.start)
    bounds = np.empty(2 * count, dtype=np.int32)
    bounds[0::2] = places.start
    bounds[1::2] = places.start + np.maximum(places.length, 0)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    every_second = pa.Array.from_buffers(pa.binary(), max(2 * count - 1, 0), buffers)
    return every_second.take(number_array(2 * rows, places.length[rows] < 0))


def _timestamps(fields: RecordFields, rows: Ints) -> Any:
    timestamp = fields.timestamp[rows]
    microseconds = number_array(timestamp * 1000, np.abs(timestamp) > _LARGEST_MS)
    return microseconds.view(ARROW_TYPES["timestamp"])


def _headers(fields: RecordFields, rows: Ints) -> Any:
    headers = fields.headers
    if headers is None:
        return pa.nulls(len(rows), HEADERS_TYPE)
    counts = headers.counts[rows]
    entries = _entries_of(headers, rows)
    keys = _texts(_taken(fields.data, headers.keys, entries))
    values = _taken(fields.data, headers.values, entries)
    structs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    bounds = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(counts, out=bounds[1:])
    return pa.ListArray.from_arrays(number_array(bounds), structs, type=HEADERS_TYPE, mask=boolean_array(counts == 0))


def _entries_of(headers: HeaderPlaces, rows: Ints) -> Ints:
    """The numbers, among all headers, of those of these rows."""
    counts = headers.counts[rows]
    first = (np.cumsum(headers.counts) - headers.counts)[rows]
    behind = np.cumsum(counts) - counts
    entries: Ints = np.arange(int(counts.sum())) + np.repeat(first - behind, counts)
    return entries


def _texts(keys: Any) -> Any:
    """Bytes as text; what is not UTF-8 becomes U+FFFD, as in Java."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode(errors="replace") for key in keys.to_pylist()], pa.string())


_COLUMNS: Final[dict[str, _Column]] = {
    "key": lambda fields, rows: _taken(fields.data, fields.key, rows),
    "value": lambda fields, rows: _taken(fields.data, fields.value, rows),
    "offset": lambda fields, rows: number_array(fields.offset[rows]),
    "timestamp": _timestamps,
    "timestampType": lambda fields, rows: number_array(fields.timestamp_type[rows].astype(np.int32)),
    HEADERS: _headers,
    CORRUPT_RECORD: lambda _, rows: pa.nulls(len(rows), pa.string()),
}
