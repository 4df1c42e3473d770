"""The header of a record batch (magic 2, KIP-98), read and changed in the buffer of the batch.

```
 0 base offset             int64   offset of the first record (absolute)
 8 batch length            int32   bytes after this field, so the batch takes 12 more
12 partition leader epoch  int32   the leader sets it; -1 from producers
16 magic                   int8    2; at the same place in all formats
17 crc                     uint32  CRC-32C of everything from the attributes to the end of the batch
21 attributes              int16   bits 0-2 codec, 3 timestamp type (1 = log append time), 4 transactional, 5 control,
                                   6 delete horizon (KIP-534), 7-15 unused
23 last offset delta       int32   last offset - base offset; compaction removes records and leaves this
27 base timestamp          int64   ms; records have differences to it; with bit 6 it is the delete horizon
35 max timestamp           int64   ms; of all records when bit 3 is set; survives compaction
43 producer id             int64   -1 without idempotence
51 producer epoch          int16   -1 without idempotence
53 base sequence           int32   sequence of the first record; -1 without idempotence and in control batches
57 records count           int32   as left by compaction, possibly 0
61 records                         compressed together with the codec
```
All integers big-endian. The CRC does not cover base offset, batch length, leader epoch and magic, so that a leader can
assign offsets in place. A wrong length makes the CRC wrong; a wrong base offset or leader epoch is not detected.
Source: Kafka `DefaultRecordBatch`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from operator import attrgetter
from typing import Final

from odradek.protocol.buffer import Buffer
from odradek.protocol.checksum import crc32c
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError

LOG_OVERHEAD: Final = 12  # base offset and batch length, the start of every format
BATCH_HEADER_SIZE: Final = 61
MIN_BATCH_LENGTH: Final = BATCH_HEADER_SIZE - LOG_OVERHEAD  # the batch length of a batch without records
MAGIC: Final = 2
MAX_SEQUENCE: Final = (1 << 31) - 1
NO_TIMESTAMP: Final = -1  # of a record without one, and of a batch of such records

CODEC_BITS: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
OFFSET_AND_LENGTH: Final = struct.Struct(">qi")
LENGTH_POSITION: Final = 8
LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
CRC_START: Final = ATTRIBUTES_POSITION  # the first byte under the CRC
FLAGS_POSITION: Final = ATTRIBUTES_POSITION + 1  # the low byte of the attributes, with all bits that are used
LAST_OFFSET_DELTA_POSITION: Final = 23
MAX_TIMESTAMP_POSITION: Final = 35
RECORDS_COUNT_POSITION: Final = 57
_CRC: Final = struct.Struct(">I")
_unpack_header: Final = HEADER.unpack_from
_pack_base_offset_into: Final = struct.Struct(">q").pack_into
_pack_leader_epoch_into: Final = struct.Struct(">i").pack_into
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_CODECS: Final = tuple(Codec)
_FIELDS: Final = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
)
_fields_of: Final[Callable[[BatchHeader], tuple[int, ...]]] = attrgetter(*_FIELDS)


class TimestampType(IntEnum):
    """The source of the timestamps of a batch (KIP-32)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader:
    """A decoded header: its fields, and values derived from them. It has no reference to the buffer.

    Do not change it. It is a plain class, not a struct of msgspec, because each batch has one and its fields are read
    twenty times: in a compiled module a read takes 1 ns instead of 20.
    """

    __slots__ = _FIELDS

    def __init__(  # noqa: PLR0913, PLR0917 - the header has 13 fields
        self,
        base_offset: int,
        batch_length: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        records_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.batch_length = batch_length
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.records_count = records_count

    def __repr__(self) -> str:
        return f"BatchHeader{self.fields}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchHeader) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    @property
    def fields(self) -> tuple[int, ...]:
        """The fields in their order in the batch, for `HEADER.pack`."""
        return _fields_of(self)

    def replace(self, **changes: int) -> BatchHeader:
        """Return a header with other values of some fields."""
        return BatchHeader(**(dict(zip(_FIELDS, self.fields, strict=True)) | changes))

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record that the batch was written with (inclusive)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The codec of the records. Raises RemoteProtocolError as `codec_of`."""
        return codec_of(self.attributes)

    @property
    def has_append_time(self) -> bool:
        """Whether `max_timestamp` is the time of the append, and the timestamp of every record."""
        return self.attributes & TIMESTAMP_TYPE_BIT != 0

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.has_append_time else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the tombstones and transaction markers of this batch; None if not set."""
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; 0 follows 2^31 - 1. -1 without sequences."""
        return -1 if self.base_sequence < 0 else (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE


def codec_of(attributes: int) -> Codec:
    """Return the codec of a batch with these attributes. Raises RemoteProtocolError for an unknown one."""
    try:
        return _CODECS[attributes & CODEC_BITS]
    except IndexError:
        raise RemoteProtocolError(f"compression codec {attributes & CODEC_BITS} is unknown") from None


def read_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Decode the header at `position`; the records after it need not be in the buffer.

    Raises RemoteProtocolError if fewer than 61 bytes remain, or magic or length cannot be those of a batch.
    """
    try:
        (
            base_offset,
            batch_length,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            records_count,
        ) = _unpack_header(buffer, position)  # in a compiled module faster than `BatchHeader(*…)`
    except struct.error:
        raise RemoteProtocolError(
            f"a batch header takes {BATCH_HEADER_SIZE} bytes, {len(buffer) - position} remain"
        ) from None
    if magic != MAGIC:
        raise RemoteProtocolError(f"a record batch of magic {magic}, where {MAGIC} is expected")
    if batch_length < MIN_BATCH_LENGTH:
        raise RemoteProtocolError(f"a record batch of length {batch_length}, less than its header takes")
    return BatchHeader(
        base_offset,
        batch_length,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    )


def batch_headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of every complete batch, in order.

    An incomplete batch at the end ends the iteration: responses to Fetch may end with one. Raises as
    `read_batch_header`.
    """
    position = 0
    end = len(buffer)
    while end - position >= BATCH_HEADER_SIZE:
        header = read_batch_header(buffer, position)
        next_position = position + header.batch_length + LOG_OVERHEAD
        if next_position > end:
            return
        yield position, header
        position = next_position


def crc_is_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the batch at `position` is complete and has the checksum of its header."""
    end = position + header.batch_length + LOG_OVERHEAD
    return end <= len(buffer) and crc32c(memoryview(buffer)[position + CRC_START : end]) == header.crc


def assign_offsets(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch into the batch at `position`; neither is under the CRC."""
    _pack_base_offset_into(buffer, position, base_offset)
    _pack_leader_epoch_into(buffer, position + LEADER_EPOCH_POSITION, leader_epoch)


def stamp_log_append_time(buffer: bytearray | memoryview, position: int, header: BatchHeader, now_ms: int) -> None:
    """Set the timestamp of every record of the batch at `position` to `now_ms`, and write the new CRC.

    The base timestamp stays, so that the records do not change (Kafka `DefaultRecordBatch.setMaxTimestamp`).
    """
    _stamp(buffer, position, header, header.attributes | TIMESTAMP_TYPE_BIT, now_ms)


def stamp_create_time(buffer: bytearray | memoryview, position: int, header: BatchHeader, max_timestamp: int) -> None:
    """Set the timestamp type of the batch at `position` to create time, and write the new CRC.

    `max_timestamp` is the largest of its records, which do not change.
    """
    _stamp(buffer, position, header, header.attributes & ~TIMESTAMP_TYPE_BIT, max_timestamp)


def _stamp(
    buffer: bytearray | memoryview, position: int, header: BatchHeader, attributes: int, max_timestamp: int
) -> None:
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + MAX_TIMESTAMP_POSITION, max_timestamp)
    write_crc(buffer, position, header.size)


def write_crc(buffer: bytearray | memoryview, position: int, size: int) -> None:
    """Compute and write the CRC of the batch of `size` bytes at `position`."""
    with memoryview(buffer) as view:
        _CRC.pack_into(buffer, position + CRC_POSITION, crc32c(view[position + CRC_START : position + size]))


def write_header(buffer: bytearray, header: BatchHeader) -> None:
    """Write `header` at the start of `buffer`, before the records, with the right CRC instead of `header.crc`.

    Raises LocalProtocolError if a number is wider than its field.
    """
    try:
        HEADER.pack_into(buffer, 0, *header.fields)
    except struct.error as error:
        raise LocalProtocolError(f"a batch header cannot carry {header}: {error}") from None
    write_crc(buffer, 0, len(buffer))
