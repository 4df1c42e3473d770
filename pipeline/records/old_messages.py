"""Columns of messages of magic 0 and 1, which Kafka stored before 0.11: rare, and so taken one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from odradek.pipeline.schema import CORRUPT_RECORD, HEADERS, arrow_schema
from odradek.protocol.buffer import Buffer
from odradek.protocol.records.batch_header import TimestampType
from odradek.protocol.records.message_set import iter_messages, read_message_header
from odradek.protocol.records.record_iterator import Record

_NO_TIMESTAMP_TYPE: Final = -1
_ON_RECORD: Final[dict[str, Callable[[Record], Any]]] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp * 1000,
    HEADERS: lambda _: None,
    CORRUPT_RECORD: lambda _: None,
}


def message_columns(
    message: Buffer, names: Sequence[str], topic: str, partition: int, start_offset: int, end_offset: int
) -> pa.RecordBatch:
    """The columns named of the message, or of those in it if it is compressed, with offsets in [start, end).

    Raises RemoteProtocolError if it is malformed or its checksum is wrong.
    """
    timestamp_type = _timestamp_type(message)
    records = [record for record in iter_messages(message) if start_offset <= record.offset < end_offset]
    same = {"topic": topic, "partition": partition, "timestampType": timestamp_type}
    columns = {
        name: [same[name]] * len(records) if name in same else [_ON_RECORD[name](record) for record in records]
        for name in names
    }
    return pa.RecordBatch.from_pydict(columns, schema=arrow_schema(names))


def _timestamp_type(message: Buffer) -> int:
    header = read_message_header(message)
    if header.magic == 0:
        return _NO_TIMESTAMP_TYPE
    return int(TimestampType(header.timestamp_type))
