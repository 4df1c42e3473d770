"""Runs of records of one shape, decoded column by column: a slice whose step is the size of a record is a column.

```
        | length | attributes | time | offset | key length | key … | value length | value … | headers |
at      |  d6 01 |         00 |   04 |     0a |         01 |       |        c8 01 | ....... |      00 |
at + S  |  d6 01 |         00 |   04 |     0c |         01 |       |        c8 01 | ....... |      00 |
```
Records with keys of one length and values of one length, such as those of sensors or of a benchmark, have the same
framing. The shape of a run is that of its first record. The next record belongs to the run if all bytes that determine
the shape are the same; then it has the same size, and so on. Columns are compared and read in C: a record of 100 bytes
takes a consumer 0.3 µs, one of any shape 0.6 µs. A search without a result has no measurable cost.

Batches of one topic are similar, so a reader of several batches keeps the shapes that it found (`Shapes`). The bytes of
a known shape are compared in the first record, too. A known shape saves the decoding of that record byte by byte, an
eighth of the time for a batch of 16 KiB with 16 records.

Headers, a time of more than 8 s after the base, and gaps between offsets end a run or prevent it. Nothing is rejected
here; the loop of `record_iterator` reads the remaining records, and raises the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import add
from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.records.record_headers import Header
from odradek.protocol.varint import SHORT_VARINTS, ZIGZAG

SHORTEST_RUN: Final = 8
_MOST_SHAPES: Final = 16
_ONE_BYTE_LENGTHS: Final = 64  # lengths and offsets below take one byte, other short ones two
_FIRST_BYTES: Final = bytes([encoded[0] for encoded in SHORT_VARINTS])
_TOP_BIT_FLIPPED: Final = bytes([byte ^ 128 for byte in range(256)])
_LOWEST_BIT: Final = bytes([byte & 1 for byte in range(256)])
_DELTA_BITS: Final = bytes([(byte & 127) >> 1 for byte in range(256)])
_SECOND_BYTES: Final = bytes([encoded[-1] for encoded in SHORT_VARINTS])


class Run(NamedTuple):
    """`records_count` records that end at `end`; `first_offset` is the delta to the base offset."""

    records_count: int
    end: int
    timestamps: list[int]
    first_offset: int
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[tuple[Header, ...]]


class Shape(NamedTuple):
    """The positions of the fields in each record of a run; a length of -1 is null."""

    size: int
    framing: tuple[tuple[int, bytes], ...]  # position and value of each byte that all records of the shape share
    time: int
    offset: int
    key_lengths: int
    key: int
    key_length: int
    value: int
    value_length: int


Shapes = dict[bytes, Shape]
"""The shapes that one reader has found, by the first two bytes of their records; empty at first."""


def find_run(data: bytes, at: int, most: int, base_timestamp: int, shapes: Shapes) -> Run | None:
    """Return the run of up to `most` records that begins at `at`; None if it is too short."""
    if most < SHORTEST_RUN:
        return None
    begins_with = data[at : at + 2]
    known = shapes.get(begins_with)
    if known is not None and (run := _run(data, at, most, base_timestamp, known)) is not None:
        return run
    shape = _first_shape(data, at)
    if shape is None or (run := _run(data, at, most, base_timestamp, shape)) is None:
        return None
    if len(shapes) >= _MOST_SHAPES:
        shapes.clear()
    shapes[begins_with] = shape
    return run


def _run(data: bytes, at: int, most: int, base_timestamp: int, shape: Shape) -> Run | None:
    """Return the run of this shape that begins at `at`; None if it is too short."""
    size = shape.size
    if at + size > len(data):
        return None
    delta, after = _read_short(data, at + shape.offset)
    if delta < 0 or after != at + shape.key_lengths:
        return None
    limit = _ONE_BYTE_LENGTHS if delta < _ONE_BYTE_LENGTHS else len(SHORT_VARINTS)
    count = min(most, (len(data) - at) // size, limit - delta)
    end = at + count * size
    for place, byte in shape.framing:
        if other := data[at + place : end : size].lstrip(byte):  # from the first different byte on
            count -= len(other)
            end = at + count * size
    if count < SHORTEST_RUN or not _counts_up(data, at, end, shape, delta):
        return None
    timestamps = _timestamps(data, at, end, base_timestamp, shape)
    if timestamps is None:
        return None
    keys = _parts(data, at, count, size, shape.key, shape.key_length)
    values = _parts(data, at, count, size, shape.value, shape.value_length)
    return Run(count, end, timestamps, delta, keys, values, [()] * count)


def _first_shape(data: bytes, at: int) -> Shape | None:
    """Return the shape of the record at `at`; None if it has headers, or the next record has another length."""
    try:
        length, place = _read_short(data, at)
        second = place + length
        if data[second : second + place - at] != data[at:place]:
            return None
        return _shape(data, at, place, second)
    except IndexError:
        return None


def _shape(data: bytes, at: int, attributes: int, end: int) -> Shape | None:
    """Return the shape of the record from `at` to `end`; None if it cannot be in a run."""
    time = attributes + 1
    offset = time + (1 if data[time] < 128 else 2)
    delta, key_lengths = _read_short(data, offset)
    key_length, key = _read_short(data, key_lengths)
    value_lengths = key + key_length if key_length > 0 else key
    value_length, value = _read_short(data, value_lengths)
    headers = value + value_length if value_length > 0 else value
    if end < at or delta < 0 or key_length < -1 or value_length < -1 or headers + 1 != end or data[headers]:
        return None
    framing = (*range(at, time), *range(key_lengths, key), *range(value_lengths, value), headers)
    return Shape(
        size=end - at,
        framing=tuple((place - at, data[place : place + 1]) for place in framing),
        time=time - at,
        offset=offset - at,
        key_lengths=key_lengths - at,
        key=key - at,
        key_length=key_length,
        value=value - at,
        value_length=value_length,
    )


def _read_short(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint of one or two bytes and the position after it; -2, which is no length, for a longer one."""
    byte = data[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    second = data[at + 1]
    if second > 127 or byte & 1:
        return -2, at
    return second << 6 | (byte & 127) >> 1, at + 2


def _counts_up(data: bytes, at: int, end: int, shape: Shape, first: int) -> bool:
    """Whether the offset deltas are `first`, `first` + 1 and so on."""
    place, size = at + shape.offset, shape.size
    last = first + (end - at) // size
    if data[place:end:size] != _FIRST_BYTES[first:last]:
        return False
    return first < _ONE_BYTE_LENGTHS or data[place + 1 : end : size] == _SECOND_BYTES[first:last]


def _timestamps(data: bytes, at: int, end: int, base: int, shape: Shape) -> list[int] | None:
    """Return the timestamps; None if a delta takes another number of bytes than in the shape."""
    place, size = at + shape.time, shape.size
    first_bytes = data[place:end:size]
    if shape.offset - shape.time == 1:
        return [base + ZIGZAG[byte] for byte in first_bytes] if first_bytes.isascii() else None
    second_bytes = data[place + 1 : end : size]
    if not (first_bytes.translate(_TOP_BIT_FLIPPED).isascii() and second_bytes.isascii()):
        return None
    if 1 not in first_bytes.translate(_LOWEST_BIT):  # no negative delta
        times = [base + (byte << 6) for byte in range(max(second_bytes) + 1)]
        return list(map(add, map(times.__getitem__, second_bytes), first_bytes.translate(_DELTA_BITS)))
    return [
        base + ((second << 6 | (first & 127) >> 1) ^ -(first & 1))
        for first, second in zip(first_bytes, second_bytes, strict=True)
    ]


def _parts(data: bytes, at: int, count: int, size: int, place: int, length: int) -> Sequence[bytes | None]:
    """Return the `length` bytes at position `place` of each record."""
    if length < 0:
        return [None] * count
    return _columns(count, place, length, size - place - length).unpack_from(data, at)


@lru_cache(maxsize=16)
def _columns(count: int, before: int, length: int, after: int) -> Struct:
    """Return the struct that reads a column of a whole run: 0.01 µs a record, a sixth of the time of slices."""
    return Struct(f"{before}x{length}s{after}x" * count)
