"""The encoding of protobuf messages: only what etcd's messages have, which are varints and bytes.

```
message   field*
field     tag (varint: number << 3 | type), then
          type 0: a varint; negative numbers as 64 bits of two's complement
          type 2: the length (varint) and as many bytes: bytes, text, or a message
          types 1 and 5: 8 and 4 bytes, skipped
varint    7 bits in each byte, the lowest first; the highest bit: more bytes follow
```

A field with its default (0, empty) is not written. Readers of messages skip unknown fields, so that newer servers may
add some.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.metadata.store.store import StoreError
from odradek.protocol.plural import pluralize

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10
_UINT64 = (1 << 64) - 1
_INT64_LIMIT = 1 << 63


class MalformedMessageError(StoreError):
    """The bytes are no protobuf message."""


def varint(value: int) -> bytes:
    value &= _UINT64
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(number: int, value: int) -> bytes:
    """Encode an integer, a Boolean or an enumeration; nothing for 0."""
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def bytes_field(number: int, value: bytes) -> bytes:
    """Encode bytes or text; nothing if they are empty."""
    return message_field(number, value) if value else b""


def message_field(number: int, value: bytes) -> bytes:
    """Encode bytes or a message, also if it is empty."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number, integer, bytes) of each field in order; of the last two, one is empty.

    Raises `MalformedMessageError`. Integers are signed, 64 bits.
    """
    position, end = 0, len(message)
    while position < end:
        tag, position = _read_varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _read_varint(message, position)
            yield number, value - (1 << 64) if value >= _INT64_LIMIT else value, b""
            continue
        if kind == _BYTES:
            length, position = _read_varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedMessageError(f"field {number} has the unknown type {kind}")
        if length > end - position:
            raise MalformedMessageError(
                f"field {number} of {pluralize(length, 'byte')} exceeds the message of {pluralize(end, 'byte')}"
            )
        position += length
        if kind == _BYTES:
            yield number, 0, message[position - length : position]


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the unsigned number at `position`, and the position after it."""
    value = shift = 0
    for byte in message[position : position + _MOST_VARINT_BYTES]:
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value & _UINT64, position
        shift += 7
    raise MalformedMessageError("a varint does not end")
