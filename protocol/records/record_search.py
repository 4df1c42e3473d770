"""Finding a record of a batch by its time, without decoding the records.

Of each record only the fields in front are read, up to the offset delta; its length leads to the next one.
`odradek.protocol.records.record_iterator` draws the layout.
"""

from __future__ import annotations

from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.varint import INT64_MAX, INT64_MIN, ZIGZAG, read_varint, read_varlong, wrapped


# One function, with short varints decoded inline, as in `record_iterator`.
def find_record(  # noqa: C901
    data: bytes, header: BatchHeader, timestamp: int, offset: int
) -> tuple[int, int] | None:
    """Return timestamp and offset of the first record with at least this timestamp and offset; None without one.

    `data` are the decompressed records of the batch of `header`. Raises RemoteProtocolError at a record that is cut off
    or does not begin as one, and at the end if the data do not end with the last record.
    """
    zigzag = ZIGZAG
    size = len(data)
    least_offset = offset - header.base_offset
    has_append_time = header.has_append_time
    base_time = header.max_timestamp if has_append_time else header.base_timestamp
    least_time, smallest, largest = timestamp - base_time, INT64_MIN - base_time, INT64_MAX - base_time
    at = 0
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
                raise RemoteProtocolError(f"a record of {pluralize(length, 'byte')} where {size - at} remain")
            # attributes, timestamp delta
            at += 1
            byte = data[at]
            if byte < 128:
                at += 1
                time = zigzag[byte]
            elif (second := data[at + 1]) < 128:
                delta = second << 6 | (byte >> 1) - 64
                time = ~delta if byte & 1 else delta
                at += 2
            else:
                time, at = read_varlong(data, at)
            if has_append_time:
                time = 0  # every record is as new as the batch
            elif not smallest <= time <= largest:
                time = wrapped(base_time + time) - base_time
            if time >= least_time:
                delta, at = read_varint(data, at)
                if delta >= least_offset:
                    return base_time + time, header.base_offset + delta
            at = end
    except IndexError:
        raise RemoteProtocolError("a batch ends inside a record") from None
    if at != size:
        raise RemoteProtocolError(f"{pluralize(size - at, 'byte follows', 'bytes follow')} the last record of a batch")
    return None
