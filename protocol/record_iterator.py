"""The records of a batch (magic 2), decoded in one tight loop.

```
length           varint   bytes after this field
attributes       int8     unused, 0
timestamp delta  varlong  to the batch's base timestamp
offset delta     varint   to the batch's base offset
key length       varint   negative: no key
key              bytes
value length     varint   negative: no value (a tombstone)
value            bytes
headers count    varint
  key length     varint   never negative
  key            bytes    UTF-8
  value length   varint   negative: null
  value          bytes
```
Varints are signed (`protocol.varint`). Where the batch says log append time, the timestamp of every record is the
batch's maximum instead. Source: Kafka `DefaultRecord`.

Every length is compared with what remains of its record before it is used; a record that does not end where its length
says, and bytes after the last record, are errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.batch_header import BATCH_HEADER_SIZE, LOG_OVERHEAD, TIMESTAMP_TYPE_BIT, BatchHeader
from protocol.compression import DEFAULT_MAX_DECOMPRESSED, decompress
from protocol.errors import RemoteProtocolError
from protocol.primitives import Buffer
from protocol.varint import INT64_MAX, INT64_MIN, read_varint, read_varlong

_ZIGZAG: Final = tuple((value >> 1) ^ -(value & 1) for value in range(128))


class Record(NamedTuple):
    """One record: offset absolute, timestamp in ms, header keys as text."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def records_section(
    buffer: Buffer, position: int, header: BatchHeader, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED
) -> bytes:
    """Return the records of the batch at `position`, decompressed but encoded.

    Raises RemoteProtocolError if the buffer cuts the batch off, the codec is unknown, the data are malformed or stand
    for more than `max_decompressed` bytes.
    """
    end = position + header.batch_length + LOG_OVERHEAD
    if end > len(buffer):
        raise RemoteProtocolError(f"a batch of {header.size} bytes where {len(buffer) - position} remain")
    section = memoryview(buffer)[position + BATCH_HEADER_SIZE : end]
    codec = header.codec
    return decompress(codec, section, max_decompressed) if codec else bytes(section)


def iter_records(
    buffer: Buffer, position: int, header: BatchHeader, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED
) -> Iterator[Record]:
    """Yield the records of the batch at `position`, decompressed at the first; keys and values are copies.

    The checksum is not looked at (`crc_is_valid`). Raises as `records_section`, and RemoteProtocolError at the record
    where the batch turns out to be malformed, after those before it were yielded.
    """
    data = records_section(buffer, position, header, max_decompressed)
    return _decode(data, header)


# One frame, varints decoded in place: a call per varint would double the time.
def _decode(data: bytes, header: BatchHeader) -> Iterator[Record]:  # noqa: C901, PLR0912, PLR0915
    new = tuple.__new__
    zigzag = _ZIGZAG
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    log_append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    # One-byte deltas are taken without a look at the sum; next to the ends of 64 bits no byte counts as short.
    short_timestamp = 128 if INT64_MIN + 64 <= base_timestamp <= INT64_MAX - 63 else 0
    short_offset = 128 if INT64_MIN + 64 <= base_offset <= INT64_MAX - 63 else 0
    size = len(data)
    at = 0
    if header.records_count < 0:
        raise RemoteProtocolError(f"a batch of {header.records_count} records")
    try:
        for _ in range(header.records_count):
            # length
            byte = data[at]
            if byte < 128:
                at += 1
                length = zigzag[byte]
            elif data[at + 1] < 128:
                length = data[at + 1] << 6 | (byte & 127) >> 1 if not byte & 1 else -1
                at += 2
            else:
                length, at = read_varint(data, at)
            end = at + length
            if length < 0 or end > size:
                raise RemoteProtocolError(f"a record of {length} bytes where {size - at} remain")
            # attributes, timestamp delta
            at += 1
            byte = data[at]
            if byte < short_timestamp:
                at += 1
                timestamp = base_timestamp + zigzag[byte]
            else:
                timestamp, at = read_varlong(data, at)
                timestamp += base_timestamp
                if not INT64_MIN <= timestamp <= INT64_MAX:
                    raise RemoteProtocolError(f"timestamp {timestamp} is wider than 64 bits")
            if log_append_time is not None:
                timestamp = log_append_time
            # offset delta
            byte = data[at]
            if byte < short_offset:
                at += 1
                offset = base_offset + zigzag[byte]
            else:
                offset, at = read_varint(data, at)
                offset += base_offset
                if not INT64_MIN <= offset <= INT64_MAX:
                    raise RemoteProtocolError(f"offset {offset} is wider than 64 bits")
            # key
            byte = data[at]
            if byte < 128:
                at += 1
                length = zigzag[byte]
            else:
                length, at = read_varint(data, at)
            if length < 0:
                key = None
            else:
                start = at
                at += length
                key = data[start:at]
            # value
            byte = data[at]
            if byte < 128:
                at += 1
                length = zigzag[byte]
            elif data[at + 1] < 128:
                length = data[at + 1] << 6 | (byte & 127) >> 1 if not byte & 1 else -1
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
            byte = data[at]
            if byte == 0:
                at += 1
                headers: list[tuple[str, bytes | None]] = []
            else:
                headers, at = _decode_headers(data, at, end)
            if at != end:
                raise RemoteProtocolError(f"a record ends {at - end} bytes after the place that its length says")
            yield new(Record, (offset, timestamp, key, value, headers))
    except IndexError:
        raise RemoteProtocolError("a batch ends inside a record") from None
    if at != size:
        raise RemoteProtocolError(f"{size - at} bytes follow the last record of a batch")


def _decode_headers(data: bytes, at: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    """Decode the headers of a record that ends at `end`; return them and the position after them."""
    count, at = read_varint(data, at)
    if not 0 <= count <= end - at:
        raise RemoteProtocolError(f"{count} record headers in {end - at} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, at = read_varint(data, at)
        if not 0 <= length <= end - at:
            raise RemoteProtocolError(f"a record header's key of {length} bytes where {end - at} remain")
        # Differs from Kafka: bytes that are not UTF-8 become surrogates, not U+FFFD: they can be written back.
        name = data[at : at + length].decode(errors="surrogateescape")
        at += length
        length, at = read_varint(data, at)
        if length < 0:
            headers.append((name, None))
            continue
        if length > end - at:
            raise RemoteProtocolError(f"a record header's value of {length} bytes where {end - at} remain")
        headers.append((name, data[at : at + length]))
        at += length
    return headers, at
