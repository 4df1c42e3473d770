"""Bounded copies of record batches: the header of each, and its first records, decompressed.

At most two batches of a partition are shown, with three records each. Of a file slice only the first 16 KiB are read: a
batch that is longer shows the records in them if it is not compressed. A batch that expands to more than 1 MiB shows no
records.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from odradek.broker.explain.shown import Shown, bytes_text, cut_text
from odradek.protocol.cli.field_text import batch_text
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CODEC_BITS,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    crc_is_valid,
    read_batch_header,
)
from odradek.protocol.records.control_records import control_record_type
from odradek.protocol.records.record_iterator import Record, iter_section, records_section

MOST_BATCHES = 2
MOST_RECORDS = 3
MOST_HEADERS = 3
READ_BYTES = 16 * 1024
MOST_DECOMPRESSED = 1 << 20

_RECORD_SIZE = 700  # bytes of a copied record, about: a key, a value and three headers


def copy_batches(records: Any) -> tuple[list[Any], int]:
    """Return the batches in a field of records, a buffer or a file slice, and the approximate size of the copy."""
    total = len(records)
    try:
        data = records.read_start(READ_BYTES) if hasattr(records, "read_start") else memoryview(records)
    except (OSError, ValueError) as error:
        return [Shown(f"{pluralize(total, 'byte')}, which cannot be read: {error}")], 200
    batches: list[Any] = []
    position = 0
    while position < total:
        if len(batches) == MOST_BATCHES or position + BATCH_HEADER_SIZE > len(data):
            batches.append(Shown(f"… {pluralize(total - position, 'byte')} more"))
            break
        if data[position + MAGIC_POSITION] < MAGIC:
            batches.append(Shown(f"a message set of magic {data[position + MAGIC_POSITION]}"))
            break
        try:
            header = read_batch_header(data, position)
        except RemoteProtocolError as error:
            batches.append(Shown(f"not a batch: {error}"))
            break
        batches.append(_copy_batch(data, position, header))
        position += header.size
    return batches, len(batches) * MOST_RECORDS * _RECORD_SIZE


def _copy_batch(data: Any, position: int, header: BatchHeader) -> dict[str, Any]:
    is_whole = position + header.size <= len(data)
    about = batch_text(header, not is_whole or crc_is_valid(data, position, header))
    shown: list[Any] = []
    try:
        section = (
            records_section(data, position, header, MOST_DECOMPRESSED) if is_whole else _rest(data, position, header)
        )
        for record in islice(iter_section(section, header), MOST_RECORDS):
            shown.append(_copy_record(record, is_control=header.is_control))  # noqa: PERF401 - keeps those before an error
    except RemoteProtocolError as error:
        if is_whole:
            shown.append(Shown(str(error)))
    if not shown and header.records_count and not is_whole:
        shown.append(Shown(f"not shown: they are compressed, or the first is longer than {READ_BYTES} bytes"))
    if len(shown) == MOST_RECORDS < header.records_count:
        shown.append(Shown(f"… {header.records_count - MOST_RECORDS} more"))
    return {"batch": Shown(about if is_whole else about.removesuffix(", crc ok")), "records": shown}


def _rest(data: Any, position: int, header: BatchHeader) -> bytes:
    """Return the records of a batch whose end is missing; none if they are compressed."""
    return b"" if header.attributes & CODEC_BITS else bytes(data[position + BATCH_HEADER_SIZE :])


def _copy_record(record: Record, *, is_control: bool) -> dict[str, Any]:
    if is_control:
        return {"offset": record.offset, "control": Shown(control_record_type(record.key).name)}
    copied: dict[str, Any] = {"offset": record.offset, "key": _text(record.key), "value": _text(record.value)}
    if record.headers:
        headers = [Shown(f"{cut_text(key)}={_text(value)}") for key, value in record.headers[:MOST_HEADERS]]
        if len(record.headers) > MOST_HEADERS:
            headers.append(Shown(f"… {len(record.headers) - MOST_HEADERS} more"))
        copied["headers"] = headers
    return copied


def _text(data: bytes | None) -> Shown:
    return Shown("null") if data is None else bytes_text(data)
