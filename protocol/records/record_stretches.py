"""Stretches of like records of various lengths, decoded column by column: one `struct` reads all of them.

```
| length | attributes | time | offset | key length | key … | value length | value … | headers … |
  1 or 2       1       1 or 2  1 or 2       1        fixed      1 or 2       any       fixed
```
Records often differ in the lengths of their values alone: keys are null or of one length, there are no headers or the
same ones with values of the same lengths, and times take as many bytes as that of the record before. Then the length of
a record says where everything is in it. A loop steps from length to length, and each gives a piece of a format. The
struct of all pieces reads the records in C, and what the lengths say is compared with what was read, column by column.
A record of 50 to 150 bytes is decoded in 0.32 µs so, where a loop that looks at each byte of its framing takes 0.44,
and with a header in 0.6 instead of 1.2.

What does not fit ends a stretch or makes none: a null value, other headers, 2 KiB or more. Nothing is refused here;
that is for the loop that reads what is left. Compiled, that loop is the faster one, and nobody asks for stretches.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from struct import Struct, calcsize
from typing import Final, NamedTuple

from odradek.protocol.records.record_headers import Header, decode_key
from odradek.protocol.records.record_runs import ONE_BYTE_LENGTHS, SHORTEST_RUN, Run, read_short
from odradek.protocol.varint import SHORT_VARINTS

_FEWEST: Final = 32  # records to try it with; below that the loop is as fast
_LONGEST: Final = 2048  # bytes of a record; each length that is met keeps a text of 70 bytes
_MOST_HEADERS: Final = 8
_NO_HEADERS: Final = b"\0"
_CODES: Final = ("", "B", "H")  # of varints, by their sizes
_AS_READ: Final = array("H", map(int.from_bytes, SHORT_VARINTS))
"""What those codes make of the varints of 0 to 8191; an array, for as a tuple it takes 300 KB."""


class _HeaderShape(NamedTuple):
    """A header that all records have: the bytes up to its value, in the first also their count; -1 for a null value."""

    framing: bytes
    key: str
    value_length: int


class _Shape(NamedTuple):
    """What the records of a stretch have in common; a key length of -1 for no key."""

    time_size: int
    key_length: int
    headers: tuple[_HeaderShape, ...]

    @property
    def key_format(self) -> str:
        return "" if self.key_length < 0 else f"{self.key_length}s"

    @property
    def headers_format(self) -> str:
        if not self.headers:
            return "1s"
        return "".join(f"{len(framing)}s" + ("" if length < 0 else f"{length}s") for framing, _, length in self.headers)


class _Formats(dict[bytes, tuple[str, int]]):
    """The piece of a format that reads a record and the size of the record, by its first two bytes.

    What no such record begins with is a KeyError.
    """

    def __init__(self, shape: _Shape, offset_size: int) -> None:
        self._before_value = f"x{_CODES[shape.time_size]}{_CODES[offset_size]}B{shape.key_format}"
        self._after_value = shape.headers_format
        # Attributes, two lengths, and no value.
        self._least = 3 + shape.time_size + offset_size + calcsize(shape.key_format) + calcsize(shape.headers_format)

    def __missing__(self, begins_with: bytes) -> tuple[str, int]:
        try:
            length, after = read_short(begins_with, 0)
        except IndexError:
            raise KeyError(begins_with) from None
        if not self._least <= length < _LONGEST:
            raise KeyError(begins_with)
        value_length = length - self._least
        code = "B"
        if value_length >= ONE_BYTE_LENGTHS:
            code = "H"
            value_length -= 1
        piece = f"{after}x{self._before_value}{code}{value_length}s{self._after_value}"
        entry = self[begins_with] = piece, after + length
        return entry


_formats = lru_cache(maxsize=16)(_Formats)


def find_stretch(data: bytes, at: int, most: int, base_timestamp: int) -> Run | None:
    """The stretch that begins with the record at `at`, up to `most` records; None if it is a short one."""
    if most < _FEWEST:
        return None
    try:
        length, attributes = read_short(data, at)
        shape, offset = _shape(data, attributes, attributes + length)
        second, attributes = read_short(data, attributes + length)
        if shape is None or _shape(data, attributes, attributes + second) != (shape, offset + 1):
            return None
    except IndexError:
        return None
    return _read(data, at, _pieces(data, at, most, shape, offset), shape, offset, base_timestamp)


def _shape(data: bytes, attributes: int, end: int) -> tuple[_Shape | None, int]:
    """The shape and the offset of a record from its attributes on; None for one that is in no stretch.

    IndexError: the data end inside it.
    """
    time_size = 1 if data[attributes + 1] < 128 else 2
    offset, key_lengths = read_short(data, attributes + 1 + time_size)
    key_length, key = read_short(data, key_lengths)
    value_length, value = read_short(data, key + max(key_length, 0))
    if offset < 0 or not -1 <= key_length < ONE_BYTE_LENGTHS or value_length < 0:
        return None, offset
    headers = _header_shapes(data, value + value_length, end)
    return None if headers is None else _Shape(time_size, key_length, headers), offset


def _header_shapes(data: bytes, at: int, end: int) -> tuple[_HeaderShape, ...] | None:
    """The shapes of the headers from `at` on to `end`; None for headers that are long, many or malformed."""
    start = at
    count, at = read_short(data, at)
    if not 0 <= count <= _MOST_HEADERS:
        return None
    shapes = []
    for _ in range(count):
        key_length, key = read_short(data, at)
        value_length, value = read_short(data, key + key_length)
        if key_length < 0 or value_length < -1:
            return None
        shapes.append(_HeaderShape(data[start:value], decode_key(data[key : key + key_length]), value_length))
        start = at = value + max(value_length, 0)
    return tuple(shapes) if at == end else None


def _pieces(data: bytes, at: int, most: int, shape: _Shape, first_offset: int) -> list[str]:
    """A piece for each record, up to `most` and as far as all of it is there."""
    pieces: list[str] = []
    try:
        for offset_size, limit in enumerate((ONE_BYTE_LENGTHS, len(SHORT_VARINTS)), start=1):
            formats = _formats(shape, offset_size)
            for _ in range(len(pieces), min(most, limit - first_offset)):
                piece, size = formats[data[at : at + 2]]
                pieces.append(piece)
                at += size
    except KeyError:
        pass
    if at > len(data):
        pieces.pop()
    return pieces


def _read(data: bytes, at: int, pieces: list[str], shape: _Shape, first_offset: int, base_timestamp: int) -> Run | None:
    """What the pieces say of the data from `at` on, as far as it is true."""
    count = len(pieces)
    if count < SHORTEST_RUN:
        return None
    struct = Struct(">" + "".join(pieces))
    fields = struct.unpack_from(data, at)
    each = len(fields) // count
    columns = iter([fields[place::each] for place in range(each)])
    times, offsets, key_lengths = next(columns), next(columns), next(columns)
    keys = next(columns) if shape.key_length >= 0 else (None,) * count
    value_lengths, values = next(columns), next(columns)
    different = set(times)
    plain = min(
        min((times.index(time) for time in different if not _is_of_size(time, shape.time_size)), default=count),
        _true(offsets, tuple(_AS_READ[first_offset : first_offset + count])),
        _true(key_lengths, (1 if shape.key_length < 0 else _AS_READ[shape.key_length],) * count),
        _true(value_lengths, tuple(map(_AS_READ.__getitem__, map(len, values)))),
    )
    headers: Sequence[tuple[Header, ...]] = [()] * count
    if not shape.headers:
        plain = min(plain, _true(next(columns), (_NO_HEADERS,) * count))
    else:
        pairs = []
        for framing, key, length in shape.headers:
            plain = min(plain, _true(next(columns), (framing,) * count))
            pairs.append(zip(repeat(key), next(columns) if length >= 0 else repeat(None, count)))
        headers = list(zip(*pairs, strict=True))
    if plain < count:
        return _read(data, at, pieces[:plain], shape, first_offset, base_timestamp)
    timestamps = {time: base_timestamp + _delta(time) for time in different}
    return Run(count, at + struct.size, list(map(timestamps.__getitem__, times)), first_offset, keys, values, headers)


def _true(read: tuple[object, ...], expected: tuple[object, ...]) -> int:
    """How many fields are the expected ones, from the first on."""
    if read == expected:
        return len(read)
    return next(index for index, pair in enumerate(zip(read, expected, strict=True)) if pair[0] != pair[1])


def _is_of_size(read: int, size: int) -> bool:
    """Whether what was read is a varint of that many bytes, one or two."""
    return read < 128 if size == 1 else read & 0x8080 == 0x8000


def _delta(read: int) -> int:
    """The number that a varint of one or two bytes stands for."""
    zigzag = read if read < 128 else (read & 127) << 7 | read >> 8 & 127
    return zigzag >> 1 ^ -(zigzag & 1)
