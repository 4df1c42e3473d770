"""The signed varints of records, many at a time: one pass over all of them for each byte of the longest.

`odradek.protocol.varint` defines the format; the same errors are raised here.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from odradek.protocol.errors import RemoteProtocolError

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_ONE: Final = np.uint64(1)
_ONE_SHORT: Final = np.uint16(1)
_SEVEN: Final = np.uint16(7)
_SHORT: Final = np.array([(value >> 1) ^ -(value & 1) for value in range(128)], dtype=np.int64)


def read_varints(data: Bytes, at: Ints, bits: int = 32) -> tuple[Ints, Ints]:
    """Decode a varint of up to `bits` bits at each of the positions; return the values and the positions after them.

    Positions outside `data` return arbitrary values, so the caller must check the resulting positions. Raises
    RemoteProtocolError if a varint is longer.
    """
    values, after, are_varints = guess_varints(data, at, bits)
    if not are_varints:
        raise RemoteProtocolError(f"a varint is longer than {bits} bits")
    return values, after


def guess_varints(data: Bytes, at: Ints, bits: int = 32) -> tuple[Ints, Ints, bool]:
    """Decode as `read_varints` positions that may hold no varints; the last result is whether all of them do."""
    byte = data.take(at, mode="clip")
    after = at + 1
    if byte.tobytes().isascii():
        return _SHORT.take(byte), after, True
    goes_on = byte >> 7
    second = data.take(after, mode="clip") * goes_on  # 0 where the varint has ended
    after += goes_on
    if second.tobytes().isascii():  # numpy calculates with 16 bits in a quarter of the time
        short = (byte & 127).astype(np.uint16) | (second.astype(np.uint16) << _SEVEN)
        return (
            ((short >> _ONE_SHORT).view(np.int16) ^ -(short & _ONE_SHORT).view(np.int16)).astype(np.int64),
            after,
            True,
        )
    zigzag = (byte & 127).astype(np.uint64) | ((second & 127).astype(np.uint64) << np.uint64(7))
    byte, shift = second, 7
    for shift in range(14, bits, 7):
        goes_on = byte >> 7
        byte = data.take(after, mode="clip") * goes_on
        zigzag |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after += goes_on
        if byte.tobytes().isascii():
            break
    is_too_long = shift + 7 > bits and np.count_nonzero(byte >> (bits - shift))
    return (zigzag >> _ONE).view(np.int64) ^ -(zigzag & _ONE).view(np.int64), after, not is_too_long


def varint_bytes(*numbers: Ints) -> tuple[Bytes, Ints]:
    """Encode the numbers of several arrays of one length; return the bytes, and the end of each element.

    Element i of the result consists of the varints of element i of every array.
    """
    zigzags = [_zigzag(values) for values in numbers]
    widths = [_widths(zigzag) for zigzag in zigzags]
    columns = []
    present = []
    for zigzag, width in zip(zigzags, widths, strict=True):
        for index in range(int(width.max(initial=1))):
            byte = (zigzag >> np.uint64(7 * index)).astype(np.uint8) & np.uint8(127)
            columns.append(byte | ((width > index + 1).view(np.uint8) << np.uint8(7)))
            present.append(width > index)
    return np.stack(columns, axis=1)[np.stack(present, axis=1)], np.cumsum(sum(widths))


def varint_sizes(values: Ints) -> Ints:
    """Return the number of bytes of each number's varint."""
    return _widths(_zigzag(values))


def _zigzag(values: Ints) -> NDArray[np.uint64]:
    return ((values << np.int64(1)) ^ (values >> np.int64(63))).view(np.uint64)


def _widths(zigzag: NDArray[np.uint64]) -> Ints:
    widths = np.ones(len(zigzag), dtype=np.int64)
    longest = int(zigzag.max(initial=0)).bit_length()
    for bits in range(7, longest, 7):
        widths += zigzag >= np.uint64(1 << bits)
    return widths
