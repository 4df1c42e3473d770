"""Stretches of plain records of various lengths, decoded column by column: one `struct` reads all of them.

```
| length | attributes | time | offset | key length | key … | value length | value … | headers |
  1 or 2       1       1 or 2  1 or 2       1        fixed      1 or 2       any         00
```
Records often differ in the lengths of their values alone: keys are null or of one length, there are no headers, and
times take as many bytes as that of the record before. Then the length of a record says where everything is in it. A
loop steps from length to length, and each gives a piece of a format. The struct of all pieces reads the records in C,
and what the lengths say is compared with what was read, column by column. A record of 50 to 150 bytes is decoded in
0.32 µs so, where a loop that looks at each byte of its framing takes 0.44.

What does not fit ends a stretch or makes none: a null value, headers, 2 KiB or more. Nothing is refused here; that is
for the loop that reads what is left. Compiled, that loop is the faster one, and nobody asks for stretches.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from protocol.record_runs import ONE_BYTE_LENGTHS, Run, read_short
from protocol.varint import SHORT_VARINTS

_SHORTEST: Final = 32  # records; below that the loop is as fast
_LONGEST: Final = 2048  # bytes of a record; each length that is met keeps a text of 70 bytes
_CODES: Final = ("", "B", "H")  # of varints, by their sizes
_AS_READ: Final = array("H", map(int.from_bytes, SHORT_VARINTS))
"""What those codes make of the varints of 0 to 8191; an array, for as a tuple it takes 300 KB."""


class _Formats(dict[bytes, tuple[str, int]]):
    """The piece of a format that reads a record and the size of the record, by its first two bytes.

    `key_length` is -1 for no key. What no plain record begins with is a KeyError.
    """

    def __init__(self, time_size: int, offset_size: int, key_length: int) -> None:
        key = "" if key_length < 0 else f"{key_length}s"
        self._before_value = f"x{_CODES[time_size]}{_CODES[offset_size]}B{key}"
        self._least = 4 + time_size + offset_size + max(key_length, 0)  # attributes, two lengths, no value, no headers

    def __missing__(self, begins_with: bytes) -> tuple[str, int]:
        try:
            length, after = read_short(begins_with, 0)
        except IndexError:
            raise KeyError(begins_with) from None
        if not self._least <= length < _LONGEST:
            raise KeyError(begins_with)
        value_length = length - self._least
        lengths = "B"
        if value_length >= ONE_BYTE_LENGTHS:
            lengths = "H"
            value_length -= 1
        piece = f"{after}x{self._before_value}{lengths}{value_length}sB"
        entry = self[begins_with] = piece, after + length
        return entry


_formats = lru_cache(maxsize=16)(_Formats)


def find_stretch(data: bytes, at: int, most: int, base_timestamp: int) -> Run | None:
    """The stretch that begins with the record at `at`, up to `most` records; None if it is a short one."""
    if most < _SHORTEST:
        return None
    try:
        length, attributes = read_short(data, at)
        time_size, delta, key_length = _framing(data, attributes)
        _, attributes = read_short(data, attributes + length)
        if _framing(data, attributes) != (time_size, delta + 1, key_length):
            return None
    except IndexError:
        return None
    if delta < 0 or not -1 <= key_length < ONE_BYTE_LENGTHS:
        return None
    pieces = _pieces(data, at, most, time_size, delta, key_length)
    return _read(data, at, pieces, time_size, delta, key_length, base_timestamp)


def _framing(data: bytes, attributes: int) -> tuple[int, int, int]:
    """Size of the time, offset and length of the key of the record with its attributes there."""
    time_size = 1 if data[attributes + 1] < 128 else 2
    offset, key_lengths = read_short(data, attributes + 1 + time_size)
    return time_size, offset, read_short(data, key_lengths)[0]


def _pieces(data: bytes, at: int, most: int, time_size: int, first_offset: int, key_length: int) -> list[str]:
    """A piece for each record, up to `most` and as far as all of it is there."""
    pieces: list[str] = []
    try:
        for offset_size, limit in enumerate((ONE_BYTE_LENGTHS, len(SHORT_VARINTS)), start=1):
            formats = _formats(time_size, offset_size, key_length)
            for _ in range(len(pieces), min(most, limit - first_offset)):
                piece, size = formats[data[at : at + 2]]
                pieces.append(piece)
                at += size
    except KeyError:
        pass
    if at > len(data):
        pieces.pop()
    return pieces


def _read(
    data: bytes, at: int, pieces: list[str], time_size: int, first_offset: int, key_length: int, base_timestamp: int
) -> Run | None:
    """What the pieces say of the data from `at` on, as far as it is true."""
    count = len(pieces)
    if count < _SHORTEST:
        return None
    struct = Struct(">" + "".join(pieces))
    fields = struct.unpack_from(data, at)
    each = 6 if key_length < 0 else 7
    times, offsets, key_lengths = fields[::each], fields[1::each], fields[2::each]
    value_lengths, values, headers = fields[each - 3 :: each], fields[each - 2 :: each], fields[each - 1 :: each]
    different = set(times)
    plain = min(
        min((times.index(time) for time in different if not _is_of_size(time, time_size)), default=count),
        _true(offsets, tuple(_AS_READ[first_offset : first_offset + count])),
        _true(key_lengths, (1 if key_length < 0 else _AS_READ[key_length],) * count),
        _true(value_lengths, tuple(map(_AS_READ.__getitem__, map(len, values)))),
        _true(headers, (0,) * count),
    )
    if plain < count:
        return _read(data, at, pieces[:plain], time_size, first_offset, key_length, base_timestamp)
    timestamps = {time: base_timestamp + _delta(time) for time in different}
    keys = [None] * count if key_length < 0 else fields[3::each]
    return Run(count, at + struct.size, list(map(timestamps.__getitem__, times)), first_offset, keys, values)


def _true(read: Sequence[int], expected: Sequence[int]) -> int:
    """How many numbers are the expected ones, from the first on."""
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
