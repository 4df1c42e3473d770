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
headers          varint   their count, then each (`protocol.record_headers`)
```
Varints are signed (`protocol.varint`). Where the batch says log append time, the timestamp of every record is the
batch's maximum instead. Source: Kafka `DefaultRecord`.

A record must end where its length says, within the batch, and the batch after the last of the records that its header
counts. No length makes more than a copy of what is left of the batch, and then the walk fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.batch_header import BATCH_HEADER_SIZE, LOG_OVERHEAD, TIMESTAMP_TYPE_BIT, BatchHeader
from protocol.compression import DEFAULT_MAX_DECOMPRESSED, decompress
from protocol.errors import RemoteProtocolError
from protocol.primitives import Buffer
from protocol.record_headers import Header, decode_headers
from protocol.varint import INT64_MAX, INT64_MIN, read_varint, read_varlong

_ZIGZAG: Final = tuple((value >> 1) ^ -(value & 1) for value in range(128))


class Record(NamedTuple):
    """One record: offset absolute, timestamp in ms, header keys as text."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


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
    """Yield the records of the batch at `position`, which is decompressed at once; keys and values are copies.

    The checksum is not looked at (`crc_is_valid`). Raises as `records_section`, and RemoteProtocolError at the record
    where the batch turns out to be malformed, after those before it were yielded.
    """
    data = records_section(buffer, position, header, max_decompressed)
    return _decode(data, header)


# One frame, varints of one and two bytes decoded in place: 0.85 µs a record of 100 bytes, where a call for each varint
# of two bytes made it 1.6 (`benchmarks/records.py`).
def _decode(data: bytes, header: BatchHeader) -> Iterator[Record]:  # noqa: C901, PLR0912, PLR0915
    new = tuple.__new__
    zigzag = _ZIGZAG
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    log_append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    # Deltas of one or two bytes are taken without a look at the sum; next to the ends of 64 bits none counts as short.
    short_timestamp = 128 if INT64_MIN + 8192 <= base_timestamp <= INT64_MAX - 8192 else 0
    short_offset = 128 if INT64_MIN + 8192 <= base_offset <= INT64_MAX - 8192 else 0
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
            elif (second := data[at + 1]) < 128:
                length = -1 if byte & 1 else second << 6 | (byte >> 1) - 64
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
            elif (second := data[at + 1]) < short_timestamp:
                delta = second << 6 | (byte >> 1) - 64
                timestamp = base_timestamp + (~delta if byte & 1 else delta)
                at += 2
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
            elif (second := data[at + 1]) < short_offset:
                delta = second << 6 | (byte >> 1) - 64
                offset = base_offset + (~delta if byte & 1 else delta)
                at += 2
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
            byte = data[at]
            if byte == 0:
                at += 1
                headers: list[Header] = []
            else:
                headers, at = decode_headers(data, at, end)
            if at != end:
                raise RemoteProtocolError(f"a record ends {at - end} bytes after the place that its length says")
            yield new(Record, (offset, timestamp, key, value, headers))
    except IndexError:
        raise RemoteProtocolError("a batch ends inside a record") from None
    if at != size:
        raise RemoteProtocolError(f"{size - at} bytes follow the last record of a batch")
