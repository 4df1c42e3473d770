"""Record batches of magic 2: everything that the broker and the client do with them, under one name.

| module | what |
|---|---|
| `batch_header` | the 61 bytes in front, drawn; read, checked, patched in place |
| `record_iterator`, `record_headers` | the records, drawn; decoded one by one |
| `record_validation` | the same walk without building records, for a leader that checks what it appends |
| `batch_builder` | batches made from records |
| `recompression` | the same batch under another codec |

Batches of magic 0 and 1 are the business of `odradek.protocol.message_set`.
"""

from __future__ import annotations

from odradek.protocol.batch_builder import BatchBuilder
from odradek.protocol.batch_header import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    TimestampType,
    assign_offsets,
    batch_headers,
    crc_is_valid,
    read_batch_header,
    stamp_create_time,
    stamp_log_append_time,
    write_crc,
)
from odradek.protocol.compression import Codec
from odradek.protocol.recompression import recompress
from odradek.protocol.record_headers import Header
from odradek.protocol.record_iterator import Record, iter_records
from odradek.protocol.record_validation import KeylessRecordsError, RecordTimestamps, validate_records

__all__ = [
    "BATCH_HEADER_SIZE",
    "LOG_OVERHEAD",
    "BatchBuilder",
    "BatchHeader",
    "Codec",
    "Header",
    "KeylessRecordsError",
    "Record",
    "RecordTimestamps",
    "TimestampType",
    "assign_offsets",
    "batch_headers",
    "crc_is_valid",
    "iter_records",
    "read_batch_header",
    "recompress",
    "stamp_create_time",
    "stamp_log_append_time",
    "validate_records",
    "write_crc",
]
