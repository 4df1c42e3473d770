"""The check of every record of a batch before a leader appends it (`record.validation=records`).

The checksum proves that the bytes are those that the producer sent. This check proves that the records agree with the
header. Kafka does it for every batch (`LogValidator`). Compacted topics need it, because a record without a key is not
allowed there.

Only what is compared is decoded; no record, key or value is created. `odradek.protocol.records.record_iterator` draws
the layout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import NO_TIMESTAMP, BatchHeader
from odradek.protocol.records.record_headers import skip_headers
from odradek.protocol.records.record_iterator import iter_section, records_section
from odradek.protocol.varint import INT64_MAX, INT64_MIN, read_varint, read_varlong

SMALLEST_RECORD: Final = 7
"""Bytes of the smallest record: its length, attributes, two deltas, two lengths and the number of headers, one each."""
MOST_BLAMED: Final = 100
"""The most records that an error names: 4 KB of zstd can contain 19 million, whose names would take gigabytes."""


class RecordTimestamps(NamedTuple):
    """The smallest and largest timestamp of a batch, in ms, and the offset of the first record with the largest.

    `min_timestamp` ignores records without a timestamp (-1), which have no bound; it is -1 if all records have none.
    """

    max_timestamp: int
    max_timestamp_offset: int
    min_timestamp: int


class KeylessRecordsError(RemoteProtocolError):
    """`count` records have no key where keys are required; `indexes` are those of the first `MOST_BLAMED`."""

    def __init__(self, count: int, indexes: list[int]) -> None:
        super().__init__(f"{pluralize(count, 'record')} without a key, the first at index {indexes[0]}")
        self.count = count
        self.indexes = indexes


def validate_records(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    require_keys: bool = False,
    max_decompressed: int | None = None,
) -> RecordTimestamps:
    """Check that the batch at `position` has as many records as its header says, with offset deltas 0, 1, 2 and so on.

    Raises RemoteProtocolError otherwise, if a record is malformed, if bytes follow the last one, and if the records
    expand to more than `max_decompressed` bytes. With `require_keys`, raises KeylessRecordsError after all records were
    checked. The checksum and the other fields of the header are not checked.
    """
    data = records_section(buffer, position, header, max_decompressed)
    count = header.records_count
    if count < 0:
        raise RemoteProtocolError(f"a batch of {pluralize(count, 'record')}")
    try:
        end, largest, largest_index, smallest, keyless_count, keyless = _walk(
            data, count, NO_TIMESTAMP - header.base_timestamp
        )
    except IndexError:
        raise RemoteProtocolError("a batch ends inside a record") from None
    if end != len(data):
        raise RemoteProtocolError(
            f"{pluralize(len(data) - end, 'byte follows', 'bytes follow')} the last record of a batch"
        )
    if require_keys and keyless_count:
        raise KeylessRecordsError(keyless_count, keyless)
    base = header.base_timestamp
    if header.has_append_time:
        return RecordTimestamps(header.max_timestamp, header.base_offset, header.max_timestamp)
    if base + largest > INT64_MAX or base + smallest < INT64_MIN:
        return _wrapped_timestamps(data, header)
    return RecordTimestamps(base + largest, header.base_offset + largest_index, base + smallest)


def _wrapped_timestamps(data: bytes, header: BatchHeader) -> RecordTimestamps:
    """Return the timestamps of a valid batch with sums beyond 64 bits, which are not in the order of their deltas."""
    timestamps = [record.timestamp for record in iter_section(data, header)]
    largest = max(timestamps)
    smallest = min([each for each in timestamps if each != NO_TIMESTAMP], default=NO_TIMESTAMP)
    return RecordTimestamps(largest, header.base_offset + timestamps.index(largest), smallest)


# One function, with varints decoded inline, as in record_iterator: 0.55 µs a record; creating the records takes 0.85
# (`benchmarks/records.py`).
def _walk(  # noqa: C901, PLR0912, PLR0915
    data: bytes, count: int, no_timestamp: int
) -> tuple[int, int, int, int, int, list[int]]:
    """Return the end of the last record, the largest timestamp delta, its index, the smallest one, keyless records.

    The keyless records are their number and the first indexes. A delta of `no_timestamp` is the smallest only if there
    is no other.
    """
    size = len(data)
    at = 0
    largest = smallest = no_timestamp
    largest_index = 0
    is_first = True
    keyless_count = 0
    keyless: list[int] = []
    # Offsets are compared in encoded form: the zigzag form of index n is 2n.
    for zigzag_index in range(0, 2 * count, 2):
        # length
        byte = data[at]
        if byte < 128:
            at += 1
            length = -1 if byte & 1 else byte >> 1
        elif (second := data[at + 1]) < 128:
            at += 2
            length = -1 if byte & 1 else second << 6 | (byte >> 1) - 64
        else:
            length, at = read_varint(data, at)
        end = at + length
        if length < 0 or end > size:
            raise RemoteProtocolError(f"a record of {pluralize(length, 'byte')} where {size - at} remain")
        # attributes, timestamp delta
        at += 1
        byte = data[at]
        if byte < 128:
            at += 1
            delta = ~(byte >> 1) if byte & 1 else byte >> 1
        elif (second := data[at + 1]) < 128:
            at += 2
            delta = second << 6 | (byte >> 1) - 64
            if byte & 1:
                delta = ~delta
        else:
            delta, at = read_varlong(data, at)
        if is_first:
            is_first = False
            largest = smallest = delta
        elif delta > largest:
            largest = delta
            largest_index = zigzag_index >> 1
            if smallest == no_timestamp:
                smallest = delta
        elif delta < smallest and delta != no_timestamp:
            smallest = delta
        # offset delta
        byte = data[at]
        if byte < 128:
            at += 1
        elif (second := data[at + 1]) < 128:
            at += 2
            byte = second << 7 | byte & 127
        else:
            delta, at = read_varint(data, at)
            byte = delta << 1 if delta >= 0 else 1
        if byte != zigzag_index:
            raise RemoteProtocolError(
                f"the record at index {zigzag_index >> 1} of a batch does not follow the one before"
            )
        # key
        byte = data[at]
        if byte < 128:
            at += 1
            length = -1 if byte & 1 else byte >> 1
        else:
            length, at = read_varint(data, at)
        if length < 0:
            keyless_count += 1
            if keyless_count <= MOST_BLAMED:
                keyless.append(zigzag_index >> 1)
        else:
            at += length
        # value
        byte = data[at]
        if byte < 128:
            at += 1
            length = -1 if byte & 1 else byte >> 1
        elif (second := data[at + 1]) < 128:
            at += 2
            length = -1 if byte & 1 else second << 6 | (byte >> 1) - 64
        else:
            length, at = read_varint(data, at)
        if length > 0:
            at += length
        # headers
        at = skip_headers(data, at, end) if data[at] else at + 1
        if at != end:
            raise RemoteProtocolError(f"a record takes {pluralize(at - end, 'byte')} more than its length says")
    return at, largest, largest_index, smallest, keyless_count, keyless
