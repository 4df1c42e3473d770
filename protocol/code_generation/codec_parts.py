"""Tables and functions that generated codecs call: tables for short values, functions for long, rare or wrong ones.

Most strings, byte strings and arrays of integers are short. For those the source calls an entry of a table, a `struct`
function; the functions handle all others, so that the source stays short. All of them take the real length or count, -1
for null. In flexible versions, where a varint of one more encodes it (KIP-482), `length` is one less than the first
byte of that varint: 127 or more if other bytes follow.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, Final

from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.uvarint import uvarint, uvarint_rest

SHORT_BYTES: Final = 127  # shorter values have a compact length of one byte
SHORT_ARRAY: Final = 16  # such as the replicas of a partition, the partitions of an assignment
MAX_ROWS: Final = 100_000
"""The most elements in all arrays of a large request; in real requests an element takes at least ten bytes."""
STEP_BYTES: Final = 4096
"""Bytes that a codec in steps reads or writes in a step: half a millisecond with elements of two bytes."""
MAX_TAGGED_FIELDS: Final = 1000
"""The most tagged fields of a structure: no message of Kafka declares more than ten."""
MAX_STRING_SIZE: Final = 0x7FFF  # also in flexible versions, whose varints could be larger: Kafka's classes reject them


@lru_cache(maxsize=1024)
def fixed(codes: str) -> struct.Struct:
    """Return the `struct` of successive big-endian fields."""
    return struct.Struct(">" + codes)


short_bytes: Final = tuple(fixed(f"{size}s").unpack_from for size in range(SHORT_BYTES))
"""Entry n reads n bytes: `short_bytes[n](buffer, offset)[0]`."""


def short_array_unpackers(code: str) -> tuple[Any, ...]:
    """Return a table whose entry n reads n numbers."""
    return tuple(fixed(f"{count}{code}").unpack_from for count in range(SHORT_ARRAY))


def short_array_packers(code: str) -> tuple[Any, ...]:
    """Return a table whose entry n writes n numbers."""
    return tuple(fixed(f"{count}{code}").pack for count in range(SHORT_ARRAY))


def bad_length(what: str, length: int, remaining: int) -> RemoteProtocolError:
    """Return the error for a length or count that the version or the buffer does not allow."""
    if length == -1:
        return RemoteProtocolError(f"{what} is null, which this version does not allow")
    return RemoteProtocolError(
        f"{what} claims length {length} where {pluralize(remaining, 'byte remains', 'bytes remain')}"
    )


def too_many_rows(rows: int) -> RemoteProtocolError:
    """Return the error for a request with more than `MAX_ROWS` elements in its arrays."""
    return RemoteProtocolError(f"its arrays have {rows} elements or more, where {MAX_ROWS} are the most")


def too_many_tagged_fields(count: int) -> RemoteProtocolError:
    """Return the error for a structure with more than `MAX_TAGGED_FIELDS`."""
    return RemoteProtocolError(f"a structure has {count} tagged fields, where {MAX_TAGGED_FIELDS} are the most")


def long_length(buffer: memoryview, offset: int, length: int) -> tuple[int, int]:
    """Read the rest of a compact length of several bytes; return it and the offset after it."""
    byte = buffer[offset]
    if byte < 128:
        return (byte << 7 | length + 1 & 127) - 1, offset + 1
    value, offset = uvarint_rest(buffer, offset, length + 1)
    return value - 1, offset


def read_bytes(buffer: memoryview, offset: int, length: int, what: str, *, nullable: bool) -> tuple[bytes | None, int]:
    """Read bytes of any length; return them and the offset after them."""
    if length == -1 and nullable:
        return None, offset
    if not 0 <= length <= len(buffer) - offset:
        raise bad_length(what, length, len(buffer) - offset)
    return bytes(buffer[offset : offset + length]), offset + length


def read_string(buffer: memoryview, offset: int, length: int, what: str, *, nullable: bool) -> tuple[str | None, int]:
    """Read a string of any length; return it and the offset after it."""
    if length > MAX_STRING_SIZE:
        raise RemoteProtocolError(f"{what} claims length {length} where strings have {MAX_STRING_SIZE} at most")
    content, offset = read_bytes(buffer, offset, length, what, nullable=nullable)
    return None if content is None else content.decode("utf-8", "replace"), offset


def read_array(
    buffer: memoryview, offset: int, length: int, what: str, code: str, *, nullable: bool
) -> tuple[list[Any] | None, int]:
    """Read an array of numbers; return it and the offset after it."""
    if length == -1 and nullable:
        return None, offset
    size = fixed(code).size
    if not 0 <= length * size <= len(buffer) - offset:
        raise bad_length(what, length, len(buffer) - offset)
    return list(fixed(f"{length}{code}").unpack_from(buffer, offset)), offset + length * size


def skip_tagged_fields(buffer: memoryview, offset: int, count: int) -> int:
    """Skip a section of unknown tagged fields; `count` is its first byte. Return the offset after it."""
    if count > 127:
        count, offset = uvarint_rest(buffer, offset, count)
        if count > MAX_TAGGED_FIELDS:
            raise too_many_tagged_fields(count)
    for _ in range(count):
        _, _, offset = read_tag(buffer, offset)
    return offset


def read_tag(buffer: memoryview, offset: int) -> tuple[int, int, int]:
    """Read number and size of a tagged field; return the number, and the start and the end of the value."""
    number = buffer[offset]
    offset += 1
    if number > 127:
        number, offset = uvarint_rest(buffer, offset, number)
    size = buffer[offset]
    offset += 1
    if size > 127:
        size, offset = uvarint_rest(buffer, offset, size)
    if size > len(buffer) - offset:
        raise bad_length(f"tagged field {number}", size, len(buffer) - offset)
    return number, offset, offset + size


def bad_tag(what: str) -> RemoteProtocolError:
    """Return the error for a tagged field whose value is shorter or longer than its size."""
    return RemoteProtocolError(f"tagged field {what} has another size")


def string_length(length: int) -> bytes:
    """Encode the compact length of a string that is not short."""
    if length > MAX_STRING_SIZE:
        raise LocalProtocolError(f"a string of {pluralize(length, 'byte')} where {MAX_STRING_SIZE} are the most")
    return uvarint(length + 1)
