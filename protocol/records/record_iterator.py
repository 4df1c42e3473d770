"""Decoding of the records of a batch (magic 2), by one loop, into columns.

```
length           varint   bytes after this field
attributes       int8     unused, 0
timestamp delta  varlong  to the batch's base timestamp
offset delta     varint   to the batch's base offset
key length       varint   negative: no key
key              bytes
value length     varint   negative: no value (a tombstone)
value            bytes
headers          varint   their count, then each (`odradek.protocol.records.record_headers`)
```
Varints are signed (`odradek.protocol.varint`). A timestamp is computed modulo 2^64, as by Kafka: the difference of two
timestamps that are far apart, such as now and -2^63, is only right so. In a batch of log append time every record has
the maximum timestamp of the batch instead. Source: Kafka `DefaultRecord`.

A record must end where its length says, within the batch, and the batch after as many records as its header counts.
Whatever a length claims, at most the rest of the batch is copied before the error.

The loop fills a list for each field, for some hundred records, and creates no object for a record: `map` and `zip` do
that in C for callers that need `Record`s. A record of 100 bytes takes a consumer 0.6 µs, or 0.3 µs among others of the
same lengths (`record_runs`); a generator of tuples took 1.1 µs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, cast

from odradek.protocol.buffer import Buffer
from odradek.protocol.compression.codecs import decompress
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from odradek.protocol.records.record_headers import Header, decode_headers
from odradek.protocol.records.record_runs import Run, Shapes, find_run
from odradek.protocol.varint import INT64_MAX, INT64_MIN, ZIGZAG, read_varint, read_varlong, wrapped

_MOST_RECORDS: Final = 512  # in columns at once, to bound their memory


class Record(NamedTuple):
    """A record: absolute offset, timestamp in ms, header keys as text."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


class RecordColumns(NamedTuple):
    """The fields of successive records, as many as `values` has; a malformed record leaves others longer."""

    offsets: Sequence[int]  # a range if they have no gaps
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[tuple[Header, ...]]


class _Lists(NamedTuple):
    """Columns that are being filled: keys and headers start as None and (), the others are appended to.

    The value is appended last, so `values` has an entry for each whole record.
    """

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[tuple[Header, ...]]


def records_section(buffer: Buffer, position: int, header: BatchHeader, max_decompressed: int | None = None) -> bytes:
    """Return the records of the batch at `position`, decompressed but encoded.

    Raises RemoteProtocolError if the batch is incomplete, the codec is unknown, or the data are malformed or expand to
    more than `max_decompressed` bytes.
    """
    end = position + header.batch_length + LOG_OVERHEAD
    if end > len(buffer):
        raise RemoteProtocolError(f"a batch of {pluralize(header.size, 'byte')} where {len(buffer) - position} remain")
    section = memoryview(buffer)[position + BATCH_HEADER_SIZE : end]
    codec = header.codec
    return decompress(codec, section, max_decompressed) if codec else bytes(section)


def iter_records(
    buffer: Buffer, position: int, header: BatchHeader, max_decompressed: int | None = None
) -> Iterator[Record]:
    """Yield the records of the batch at `position`; keys and values are copies. The call itself decompresses them.

    The checksum is not verified (`crc_is_valid`). Raises as `records_section`, and RemoteProtocolError at a malformed
    record, after yielding those before it.
    """
    return chain.from_iterable(map(_records, iter_columns(buffer, position, header, max_decompressed)))


def iter_section(section: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records in the result of `records_section`. Raises as `iter_records` while iterating."""
    return chain.from_iterable(map(_records, _decode(section, header, {})))


def _records(columns: RecordColumns) -> Iterator[Record]:
    new = cast("Callable[[type[Record], tuple[Any, ...]], Record]", tuple.__new__)
    return map(new, repeat(Record), zip(*columns[:-1], map(list, columns.headers), strict=False))


def iter_columns(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    max_decompressed: int | None = None,
    shapes: Shapes | None = None,
) -> Iterator[RecordColumns]:
    """Yield the records of a batch as columns, some hundred at a time. Raises as `iter_records`.

    Pass the same `shapes` for successive batches of a topic.
    """
    data = records_section(buffer, position, header, max_decompressed)
    return _decode(data, header, {} if shapes is None else shapes)


def _decode(data: bytes, header: BatchHeader, shapes: Shapes) -> Iterator[RecordColumns]:
    left = header.records_count
    if left < 0:
        raise RemoteProtocolError(f"a batch of {pluralize(left, 'record')}")
    deltas_are_safe = _deltas_are_safe(header)
    at = 0
    while left > 0:
        count = min(left, _MOST_RECORDS)
        run = find_run(data, at, count, header.base_timestamp, shapes) if deltas_are_safe else None
        if run is not None:
            yield _of_run(run, header)
            at = run.end
            left -= run.records_count
            continue
        lists = _Lists([], [], [None] * count, [], [()] * count)
        malformed = None
        try:
            at = _fill(lists, data, at, header, count)
        except IndexError:
            malformed = "a batch ends inside a record"
        except RemoteProtocolError as error:
            malformed = str(error)
        yield _of_lists(lists, header)
        if malformed is not None:
            raise RemoteProtocolError(malformed)
        left -= count
    if at != len(data):
        raise RemoteProtocolError(
            f"{pluralize(len(data) - at, 'byte follows', 'bytes follow')} the last record of a batch"
        )


def _deltas_are_safe(header: BatchHeader) -> bool:
    """Whether no delta of one or two bytes can exceed 64 bits."""
    return (
        INT64_MIN + 8192 <= header.base_timestamp <= INT64_MAX - 8192
        and INT64_MIN + 8192 <= header.base_offset <= INT64_MAX - 8192
    )


def _of_run(run: Run, header: BatchHeader) -> RecordColumns:
    count, first_offset = run.records_count, header.base_offset + run.first_offset
    timestamps = [header.max_timestamp] * count if header.has_append_time else run.timestamps
    return RecordColumns(range(first_offset, first_offset + count), timestamps, run.keys, run.values, run.headers)


def _of_lists(lists: _Lists, header: BatchHeader) -> RecordColumns:
    if header.has_append_time:
        return RecordColumns(*lists)._replace(timestamps=[header.max_timestamp] * len(lists.values))
    return RecordColumns(*lists)


# One function, with varints of one and two bytes decoded inline, for speed.
def _fill(lists: _Lists, data: bytes, at: int, header: BatchHeader, count: int) -> int:  # noqa: C901, PLR0912, PLR0915
    """Decode `count` records from `at` on; return the position after them. Raises IndexError if the data end before."""
    offsets, timestamps, keys, values, headers = lists
    zigzag = ZIGZAG
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    # For deltas of one or two bytes the sum is not checked; near the limits of 64 bits none counts as short.
    short_timestamp = 128 if INT64_MIN + 8192 <= base_timestamp <= INT64_MAX - 8192 else 0
    short_offset = 128 if INT64_MIN + 8192 <= base_offset <= INT64_MAX - 8192 else 0
    size = len(data)
    for index in range(count):
        # length
        byte = data[at]
        if byte < 128:
            at += 1
            length = zigzag[byte]
        elif (second := data[at + 1]) < 128:
            length = -1 if byte & 1 else second << 6 | (byte >> 1) - 64
            at += 2
        else:
            length, at = read_varint(data, at)
        end = at + length
        if length < 0 or end > size:
            raise RemoteProtocolError(f"a record of {pluralize(length, 'byte')} where {size - at} remain")
        # attributes, timestamp delta
        at += 1
        byte = data[at]
        if byte < short_timestamp:
            at += 1
            timestamps.append(base_timestamp + zigzag[byte])
        elif (second := data[at + 1]) < short_timestamp:
            delta = second << 6 | (byte >> 1) - 64
            timestamps.append(base_timestamp + (~delta if byte & 1 else delta))
            at += 2
        else:
            timestamp, at = read_varlong(data, at)
            timestamp += base_timestamp
            timestamps.append(timestamp if INT64_MIN <= timestamp <= INT64_MAX else wrapped(timestamp))
        # offset delta
        byte = data[at]
        if byte < short_offset:
            at += 1
            offsets.append(base_offset + zigzag[byte])
        elif (second := data[at + 1]) < short_offset:
            delta = second << 6 | (byte >> 1) - 64
            offsets.append(base_offset + (~delta if byte & 1 else delta))
            at += 2
        else:
            offset, at = read_varint(data, at)
            offset += base_offset
            if not INT64_MIN <= offset <= INT64_MAX:
                raise RemoteProtocolError(f"offset {offset} is wider than 64 bits")
            offsets.append(offset)
        # key
        byte = data[at]
        if byte < 128:
            at += 1
            length = zigzag[byte]
        else:
            length, at = read_varint(data, at)
        if length >= 0:
            start = at
            at += length
            keys[index] = data[start:at]
        # value
        byte = data[at]
        if byte < 128:
            at += 1
            length = zigzag[byte]
        elif (second := data[at + 1]) < 128:
            length = -1 if byte & 1 else second << 6 | (byte >> 1) - 64
            at += 2
        else:
            length, at = read_varint(data, at)
        if length < 0:
            value = None
        else:
            start = at
            at += length
            value = data[start:at]
        # headers
        if data[at] == 0:
            at += 1
        else:
            decoded, at = decode_headers(data, at, end)
            headers[index] = tuple(decoded)
        if at != end:
            raise RemoteProtocolError(f"a record takes {pluralize(at - end, 'byte')} more than its length says")
        values.append(value)
    return at
