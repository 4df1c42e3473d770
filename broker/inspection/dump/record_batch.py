"""The lines of a batch of magic 2 or above, and of its records.

```
baseOffset: 0 lastOffset: 9 count: 10 … position: 0 CreateTime: 1700000000009 size: 191 magic: 2 … isvalid: true
| offset: 0 CreateTime: 1700000000000 keySize: 2 valueSize: 4 sequence: 0 headerKeys: [] key: t0 payload: t0-0
```
`odradek.protocol.records.batch_header` describes the bytes. The header is printed as it is, 61 bytes from the batch's
first, even if the batch's size is less. Only the last column uses the checksum; records are printed whatever it is. Of
an uncompressed batch those before the malformed one are printed, of a compressed one all or none, because Kafka decodes
them at once. Source: Kafka `DefaultRecordBatch`, `DumpLogSegments`.

Differs from Kafka: a batch that expands to more than a gigabyte, and varints with bits beyond their width
(`odradek.protocol.varint`), end the dump.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from odradek.broker.inspection.dump.complaints import DumpError, OffsetWatch
from odradek.broker.inspection.dump.control_records import control_text
from odradek.broker.inspection.dump.java import INT32_MAX, boolean, int32, int64, optional_long, utf8_text
from odradek.broker.inspection.dump.log_file import Batch, LogFile
from odradek.broker.inspection.dump.options import DumpOptions
from odradek.broker.inspection.dump.record_text import contents
from odradek.protocol.checksum import crc32c
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, CRC_START, HEADER, BatchHeader
from odradek.protocol.records.record_iterator import Record, iter_records

_MAX_DECOMPRESSED: Final = 1 << 30


def last_offset(log: LogFile, batch: Batch) -> int:
    header = _header(log, batch)
    return int64(header.base_offset + header.last_offset_delta)


def max_record_timestamp(log: LogFile, batch: Batch) -> int:
    """The largest timestamp of the records, at least -1."""
    return max((record.timestamp for record in _records(log, batch, _header(log, batch))), default=-1)


def batch_line(log: LogFile, batch: Batch) -> Iterator[str]:
    header = _header(log, batch)
    sequence = header.base_sequence
    yield (
        f"baseOffset: {batch.offset}"
        f" lastOffset: {int64(header.base_offset + header.last_offset_delta)}"
        f" count: {header.records_count}"
        f" baseSequence: {sequence}"
        f" lastSequence: {-1 if sequence == -1 else _increment_sequence(sequence, header.last_offset_delta)}"
        f" producerId: {header.producer_id}"
        f" producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.partition_leader_epoch}"
        f" isTransactional: {boolean(header.is_transactional)}"
        f" isControl: {boolean(header.is_control)}"
        f" deleteHorizonMs: {optional_long(header.delete_horizon_ms)}"
    )
    yield (
        f" position: {batch.position}"
        f" {_timestamp_type(header)}: {header.max_timestamp}"
        f" size: {batch.size}"
        f" magic: {batch.magic}"
        f" compresscodec: {header.codec.name.lower()}"
        f" crc: {header.crc}"
        f" isvalid: {boolean(_is_valid(log, batch, header))}\n"
    )


def record_lines(log: LogFile, batch: Batch, options: DumpOptions, watch: OffsetWatch) -> Iterator[str]:
    header = _header(log, batch)
    is_control = header.is_control
    timestamp_type = _timestamp_type(header)
    base_offset = header.base_offset
    base_sequence = header.base_sequence
    prints_contents = options.prints_contents and not is_control
    prefix = "| " if options.skips_record_metadata else " "
    for record in _records(log, batch, header):
        offset, timestamp, key, value, headers = record
        watch.see(offset)
        if not options.skips_record_metadata:
            sequence = -1 if base_sequence < 0 else _increment_sequence(base_sequence, offset - base_offset)
            names = ",".join(utf8_text(name.encode(errors="surrogateescape")) for name, _ in headers) if headers else ""
            yield (
                f"| offset: {offset} {timestamp_type}: {timestamp}"
                f" keySize: {-1 if key is None else len(key)} valueSize: {-1 if value is None else len(value)}"
                f" sequence: {sequence} headerKeys: [{names}]"
            )
            if is_control:
                yield control_text(key, value)
        if prints_contents:
            yield contents(options.record_text, prefix, offset, key, value)
        yield "\n"


def _header(log: LogFile, batch: Batch) -> BatchHeader:
    return BatchHeader(*HEADER.unpack(log.read(batch.position, BATCH_HEADER_SIZE)))


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.has_append_time else "CreateTime"


def _is_valid(log: LogFile, batch: Batch, header: BatchHeader) -> bool:
    if batch.size < BATCH_HEADER_SIZE:
        return False
    return crc32c(log.read(batch.position, batch.size)[CRC_START:]) == header.crc


def _records(log: LogFile, batch: Batch, header: BatchHeader) -> Iterator[Record]:
    if batch.size < BATCH_HEADER_SIZE:
        raise DumpError(
            f"{log.path} at {batch.position}: a batch of {pluralize(batch.size, 'byte')}, less than its header takes"
        )
    if header.records_count == 0:
        return
    records = _checked(iter_records(log.read(batch.position, batch.size), 0, header, _MAX_DECOMPRESSED), header)
    yield from list(records) if header.codec else records


def _checked(records: Iterator[Record], header: BatchHeader) -> Iterator[Record]:
    """Yield the last record only after checking that no bytes follow it."""
    for number, record in enumerate(records, 1):
        if number == header.records_count:
            next(records, None)
        yield record


def _increment_sequence(sequence: int, increment: int) -> int:
    """Add as Kafka does: sequences wrap from 2^31 - 1 to 0, integers from there to -2^31."""
    if sequence > int32(INT32_MAX - increment):
        return int32(increment - (INT32_MAX - sequence) - 1)
    return int32(sequence + increment)
