"""Record batches of magic 2: everything that the broker and the client do with them, under one name.

`batch_header` draws the 61 bytes in front and reads and patches them; `record_iterator` draws the records and decodes
them; `batch_builder` makes batches. Batches of magic 0 and 1 are the business of `protocol.message_set`.
"""

from __future__ import annotations

from protocol.batch_builder import BatchBuilder
from protocol.batch_header import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    TimestampType,
    assign_offsets,
    batch_headers,
    crc_is_valid,
    read_batch_header,
    stamp_log_append_time,
    write_crc,
)
from protocol.compression import DEFAULT_MAX_DECOMPRESSED, Codec
from protocol.record_iterator import Record, iter_records

__all__ = [
    "BATCH_HEADER_SIZE",
    "DEFAULT_MAX_DECOMPRESSED",
    "LOG_OVERHEAD",
    "BatchBuilder",
    "BatchHeader",
    "Codec",
    "Record",
    "TimestampType",
    "assign_offsets",
    "batch_headers",
    "crc_is_valid",
    "iter_records",
    "read_batch_header",
    "stamp_log_append_time",
    "write_crc",
]
