"""The signed varints of records: zigzag, then 7 bits a byte, least significant first, top bit set on all but the last.

Zigzag folds the sign into the lowest bit (0, -1, 1, -2 become 0, 1, 2, 3), so that small numbers of either sign are
short. At most 5 bytes make a varint (32 bits) and 10 a varlong (64 bits). Source: Kafka `ByteUtils`, after sint32 and
sint64 of Protocol Buffers.

The loops that read and write batches handle short varints inline. This module has the general case, and
`SHORT_VARINTS`, the encodings of nearly every length in a record.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1


def wrapped(value: int) -> int:
    """Return the sum or difference of two integers of 64 bits as Java computes it: modulo 2^64, signed."""
    return (value - INT64_MIN) % (1 << 64) + INT64_MIN


def encode_varint(value: int) -> bytes:
    """Encode a signed integer of up to 64 bits; raise LocalProtocolError for a wider one.

    A varint and a varlong of one value have the same bytes.
    """
    if not INT64_MIN <= value <= INT64_MAX:
        raise LocalProtocolError(f"{value} does not fit into 64 bits")
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Decode a varint of 32 bits; return the value and the position after it.

    Raises RemoteProtocolError if it is longer, IndexError if the buffer ends inside it.
    """
    byte = buffer[position]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _read(buffer, position, 32)


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Decode a varint of 64 bits; return the value and the position after it. Errors as in `read_varint`."""
    return _read(buffer, position, 64)


def _read(buffer: Buffer, position: int, bits: int) -> tuple[int, int]:
    zigzag = 0
    # Differs from Kafka: bits beyond the width are an error, because without them garbage would become a number.
    for shift in range(0, bits, 7):
        byte = buffer[position]
        position += 1
        zigzag |= (byte & 127) << shift
        if byte < 128:
            if zigzag >> bits:
                break
            return (zigzag >> 1) ^ -(zigzag & 1), position
    raise RemoteProtocolError(f"a varint is longer than {bits} bits")


SHORT_VARINTS: Final = tuple(encode_varint(value) for value in range(8192))
"""The encodings of 0 to 8191, which take one or two bytes."""

ZIGZAG: Final = tuple((value >> 1) ^ -(value & 1) for value in range(128))
"""The values of the varints of one byte."""
