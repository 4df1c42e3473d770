"""Messages of magic 0 and 1 as Arrow columns. Kafka stored them before 0.11; they are rare, so decoded one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from odradek.pipeline.schema import CORRUPT_RECORD, HEADERS, LARGEST_MS, SMALLEST_MS, arrow_schema
from odradek.protocol.buffer import Buffer
from odradek.protocol.records.batch_header import TimestampType
from odradek.protocol.records.message_set import iter_messages, read_message_header
from odradek.protocol.records.record_iterator import Record

_NO_TIMESTAMP_TYPE: Final = -1
_COLUMNS: Final[dict[str, Callable[[Record], Any]]] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp * 1000 if SMALLEST_MS <= record.timestamp <= LARGEST_MS else None,
    HEADERS: lambda _: None,
    CORRUPT_RECORD: lambda _: None,
}


def message_columns(
    message: Buffer, names: Sequence[str], topic: str, partition: int, start_offset: int, end_offset: int
) -> pa.RecordBatch:
    """Return the named columns of a message, or of the messages in a compressed one, with offsets in [start, end).

    Raises RemoteProtocolError if it is malformed or its checksum is wrong.
    """
    timestamp_type = _timestamp_type(message)
    records = [record for record in iter_messages(message) if start_offset <= record.offset < end_offset]
    constants = {"topic": topic, "partition": partition, "timestampType": timestamp_type}
    columns = {
        name: [constants[name]] * len(records) if name in constants else [_COLUMNS[name](record) for record in records]
        for name in names
    }
    return pa.RecordBatch.from_pydict(columns, schema=arrow_schema(names))


def _timestamp_type(message: Buffer) -> int:
    header = read_message_header(message)
    if header.magic == 0:
        return _NO_TIMESTAMP_TYPE
    return int(TimestampType(header.timestamp_type))
