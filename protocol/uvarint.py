"""The unsigned varints of messages: 7 bits a byte, least significant first, the top bit set on all but the last byte.

At most five bytes make one, for 32 bits (KIP-482). Compact lengths are unsigned varints of the length plus one; zero is
null. The signed varints of records are in `odradek.protocol.varint`.
"""

from __future__ import annotations

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import RemoteProtocolError

_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint of up to 32 bits."""
    if value < 128:
        return _ONE_BYTE[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def uvarint_rest(buffer: Buffer, offset: int, first: int) -> tuple[int, int]:
    """Decode the rest of an unsigned varint whose first byte is 128 or more; `offset` is that of the second byte.

    Returns the value and the offset after it. Raises RemoteProtocolError if it does not end within five bytes or 32
    bits, IndexError if the buffer ends inside it.
    """
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, offset
    raise RemoteProtocolError("an unsigned varint is longer than 32 bits")
