"""Arrow columns as a record batch of magic 2: each part of all records is one Arrow array, and Arrow joins them.

```
record  = numbers                            | key | value length v | value | headers
numbers = length v | 0 | timestamp delta v | offset delta v | key length v
headers = count v  | each: key length v | key | value length v | value
```
`v`: a varint. The format is drawn in `protocol.record_iterator`. Compression is that of `protocol`, which Kafka's own
readers can undo; Arrow's own LZ4 has blocks that depend on each other, and Kafka refuses those.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_values import binary_scalar, number_scalar, numbers_of
from pipeline.varints import Ints, varint_bytes, varint_sizes
from protocol.batch_header import HEADER, MAGIC
from protocol.compression import compress
from protocol.errors import LocalProtocolError
from protocol.records import BATCH_HEADER_SIZE, LOG_OVERHEAD, BatchHeader, Codec, write_crc

_NO_LEADER_EPOCH: Final = -1
_ATTRIBUTES_SIZE: Final = 1
_EMPTY: Final = binary_scalar(b"")


def encode_batch(
    keys: Any,
    values: Any,
    headers: Any = None,
    *,
    timestamp: int | Any,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One batch, base offset 0, of the records in the arrays `keys` and `values` (binary or text) and `headers`.

    `keys` and `headers` may be None: no record has any. `headers` is of `schema.HEADERS_TYPE`. `timestamp`: the ms of
    all records, or an array of int64. `level` is that of `protocol.compression`. Raises LocalProtocolError for a batch
    of no records or one that the format cannot carry.
    """
    count = len(values)
    if not count:
        raise LocalProtocolError("a batch of no records")
    timestamps = np.full(count, timestamp) if isinstance(timestamp, int) else np.asarray(timestamp, dtype=np.int64)
    try:
        records = _records(pa.nulls(count, pa.binary()) if keys is None else keys, values, headers, timestamps)
    except pa.ArrowInvalid as error:
        raise LocalProtocolError(f"a record batch cannot take more than 2 GiB: {error}") from None
    batch = bytearray(BATCH_HEADER_SIZE) + (compress(codec, records, level) if codec else memoryview(records))
    header = BatchHeader(
        base_offset=0,
        batch_length=len(batch) - LOG_OVERHEAD,
        partition_leader_epoch=_NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=int(codec),
        last_offset_delta=count - 1,
        base_timestamp=int(timestamps[0]),
        max_timestamp=int(timestamps.max()),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=count,
    )
    HEADER.pack_into(batch, 0, *header.fields)
    write_crc(batch, 0, len(batch))
    return bytes(batch)


def _records(keys: Any, values: Any, headers: Any, timestamps: Ints) -> Any:
    """The records as one buffer."""
    keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    header_bytes = _header_bytes(headers, len(values))
    key_length, value_length = _lengths(keys), _lengths(values)
    timestamp_delta, offset_delta = timestamps - timestamps[0], np.arange(len(values), dtype=np.int64)
    length = (
        _ATTRIBUTES_SIZE
        + varint_sizes(timestamp_delta)
        + varint_sizes(offset_delta)
        + _field_sizes(key_length)
        + _field_sizes(value_length)
        + _lengths(header_bytes)
    )
    attributes = np.zeros(len(values), dtype=np.int64)  # a byte of 0, as the varint of 0 is
    numbers = _varints(length, attributes, timestamp_delta, offset_delta, key_length)
    return _joined(numbers, _filled(keys), _varints(value_length), _filled(values), header_bytes).buffers()[2]


def _header_bytes(headers: Any, count: int) -> Any:
    """The headers of each record with their number, encoded."""
    if headers is None:
        return pa.repeat(binary_scalar(b"\0"), count)
    counts = numbers_of(pc.fill_null(pc.list_value_length(headers), number_scalar(0))).astype(np.int64)
    entries = headers.flatten()
    keys, values = entries.field("key").cast(pa.binary()), entries.field("value").cast(pa.binary())
    if keys.null_count:
        raise LocalProtocolError("the key of a record header is null")
    each = _joined(_varints(_lengths(keys)), keys, _varints(_lengths(values)), _filled(values))
    ends = np.frombuffer(each.buffers()[1], dtype=np.int32)[: len(each) + 1]
    of_records = ends[np.concatenate(([0], np.cumsum(counts)))]
    together = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(of_records), each.buffers()[2]])
    return _joined(_varints(counts), together)


def _lengths(column: Any) -> Ints:
    """Bytes of each element, -1 for null."""
    lengths: Ints = numbers_of(pc.fill_null(pc.binary_length(column), number_scalar(-1))).astype(np.int64)
    return lengths


def _field_sizes(lengths: Ints) -> Ints:
    return varint_sizes(lengths) + np.maximum(lengths, 0)


def _filled(column: Any) -> Any:
    return column.fill_null(_EMPTY) if column.null_count else column


def _varints(*numbers: Ints) -> Any:
    data, ends = varint_bytes(*numbers)
    bounds = np.concatenate(([0], ends)).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def _joined(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, _EMPTY)
