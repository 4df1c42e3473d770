"""Encode Arrow columns as record batches of magic 2: each part of the records is one Arrow array, and Arrow joins them.

```
record  = numbers                            | key | value length v | value | headers
numbers = length v | 0 | timestamp delta v | offset delta v | key length v
headers = count v  | each: key length v | key | value length v | value
```
`v`: a varint. `odradek.protocol.records.record_iterator` describes the format. Compression is that of `protocol`,
because Arrow's LZ4 writes dependent blocks, which Kafka rejects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.records.arrow_values import binary_scalar, number_scalar, numbers_of
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.records.varints import Ints, varint_bytes, varint_sizes
from odradek.pipeline.records.whole_batches import whole_batches
from odradek.pipeline.schema import HEADERS
from odradek.protocol.buffer import Buffer
from odradek.protocol.compression.codecs import Codec, compress
from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAX_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    read_batch_header,
    write_header,
)

_NO_LEADER_EPOCH: Final = -1
_ATTRIBUTES_SIZE: Final = 1
_EMPTY: Final = binary_scalar(b"")


class EncodedRecords(NamedTuple):
    """Consecutive records; record i is the bytes from `bounds[i]` to `bounds[i + 1]` of `data`."""

    data: memoryview
    bounds: Ints

    def part(self, start: int, end: int) -> memoryview:
        """Return the bytes of the records [start, end)."""
        return self.data[self.bounds[start] : self.bounds[end]]


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
) -> bytearray:
    """Encode one batch with base offset 0 from the arrays `keys`, `values` (binary or text) and `headers`.

    `timestamp` is in ms, one for all records or an array of int64. Other parameters and the errors are those of
    `encode_records` and `join_batch`.
    """
    count = len(values)
    timestamps = np.broadcast_to(np.asarray(timestamp, dtype=np.int64), count)
    base_timestamp = int(timestamps[0]) if count else NO_TIMESTAMP
    deltas = np.arange(count, dtype=np.int64)
    records = encode_records(keys, values, headers, offset_deltas=deltas, timestamp_deltas=timestamps - base_timestamp)
    return join_batch(
        [records.data],
        count,
        base_timestamp=base_timestamp,
        max_timestamp=int(timestamps.max()) if count else NO_TIMESTAMP,
        codec=codec,
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def join_batch(
    pieces: Sequence[Buffer],
    count: int,
    *,
    base_timestamp: int,
    max_timestamp: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """Join `count` records, encoded by `encode_records`, to one batch with base offset 0.

    Their offset deltas are 0 to `count` - 1. `level` is that of `odradek.protocol.compression.codecs`. Raises
    LocalProtocolError for a batch without records.
    """
    if not count:
        raise LocalProtocolError("a batch needs at least one record")
    body = [compress(codec, pieces[0] if len(pieces) == 1 else b"".join(pieces), level)] if codec else pieces
    batch = bytearray().join((bytes(BATCH_HEADER_SIZE), *body))
    header = BatchHeader(
        base_offset=0,
        batch_length=len(batch) - LOG_OVERHEAD,
        partition_leader_epoch=_NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=int(codec),
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=count,
    )
    write_header(batch, header)
    return batch


def halves(batch: Buffer, level: int | None) -> list[bytearray]:
    """Split a batch of several records with one timestamp into two; sequence numbers continue in the second.

    For topics with a small `max.message.bytes`.
    """
    header = read_batch_header(batch)
    columns = ("key", "value", HEADERS)
    decoded = decode(whole_batches(batch), topic="", partition=0, columns=columns)
    records = pa.Table.from_batches(decoded).combine_chunks()
    keys, values, headers = (column.chunk(0) for column in records.columns)
    half = header.records_count // 2
    return [
        encode_batch(
            *(column.slice(start, count) for column in (keys, values, headers)),
            timestamp=header.base_timestamp,
            codec=header.codec,
            level=level,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=(header.base_sequence + start) & MAX_SEQUENCE,
        )
        for start, count in ((0, half), (half, header.records_count - half))
    ]


def encode_records(
    keys: Any, values: Any, headers: Any, *, offset_deltas: Ints, timestamp_deltas: Ints | None = None
) -> EncodedRecords:
    """Encode the records in the arrays `keys` and `values` (binary or text) and `headers`, for one or several batches.

    `keys` or `headers` is None if no record has any. `headers` has the type `schema.HEADERS_TYPE`. Deltas are relative
    to the first record of a record's batch; `timestamp_deltas` are 0 by default. Raises LocalProtocolError for records
    that the format does not allow, or of more than 2 GiB.
    """
    count = len(values)
    if timestamp_deltas is None:
        timestamp_deltas = np.zeros(count, dtype=np.int64)
    try:
        keys = pa.nulls(count, pa.binary()) if keys is None else keys.cast(pa.binary())
        joined = _records(keys, values.cast(pa.binary()), headers, timestamp_deltas, offset_deltas)
    except pa.ArrowInvalid as error:
        raise LocalProtocolError(f"records of more than 2 GiB cannot be encoded together: {error}") from None
    return EncodedRecords(memoryview(joined.buffers()[2]), _bounds(joined))


def _records(keys: Any, values: Any, headers: Any, timestamp_deltas: Ints, offset_deltas: Ints) -> Any:
    """Return an array with one element for each encoded record."""
    header_bytes = _header_bytes(headers, len(values))
    key_length, value_length = _lengths(keys), _lengths(values)
    length = (
        _ATTRIBUTES_SIZE
        + varint_sizes(timestamp_deltas)
        + varint_sizes(offset_deltas)
        + _field_sizes(key_length)
        + _field_sizes(value_length)
        + _lengths(header_bytes)
    )
    attributes = np.zeros(len(values), dtype=np.int64)  # one byte 0, which is the varint of 0
    numbers = _varints(length, attributes, timestamp_deltas, offset_deltas, key_length)
    return _joined(numbers, _filled(keys), _varints(value_length), _filled(values), header_bytes)


def _header_bytes(headers: Any, count: int) -> Any:
    """Return the encoded headers of each record, with their number in front."""
    if headers is None:
        return pa.repeat(binary_scalar(b"\0"), count)
    counts = numbers_of(pc.fill_null(pc.list_value_length(headers), number_scalar(0))).astype(np.int64)
    entries = headers.flatten()
    keys, values = entries.field("key").cast(pa.binary()), entries.field("value").cast(pa.binary())
    if keys.null_count:
        raise LocalProtocolError("the key of a record header is null")
    each = _joined(_varints(_lengths(keys)), keys, _varints(_lengths(values)), _filled(values))
    of_records = _bounds(each)[np.concatenate(([0], np.cumsum(counts)))]
    together = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(of_records), each.buffers()[2]])
    return _joined(_varints(counts), together)


def _bounds(column: Any) -> Any:
    """Return the start of each element, and the end of the last one, of an array with offset 0."""
    return np.frombuffer(column.buffers()[1], dtype=np.int32)[: len(column) + 1]


def _lengths(column: Any) -> Ints:
    """Return the number of bytes of each element, -1 for null."""
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
