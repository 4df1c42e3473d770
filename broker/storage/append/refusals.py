"""The errors of batches that a leader rejects, and the checks of their header, size and framing.

`validation` calls them before it appends anything; its table has the codes. The caller puts code, detail and the
rejected records into the response to the client. Metrics count the causes of `Cause` separately, because one error code
stands for several.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final, NamedTuple

from odradek.protocol.compression.codecs import largest_decompressed_size, max_decompressed_size
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import (
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
)
from odradek.protocol.records.message_set import MIN_LENGTHS
from odradek.protocol.records.record_validation import SMALLEST_RECORD

WritableBatch = memoryview | bytearray

_LENGTH: Final = struct.Struct(">i")


class Cause(Enum):
    """The fault of a rejected batch as a whole."""

    NOT_ONE_BATCH = "there is not exactly one whole batch of a format that the request may carry"
    CHECKSUM = "the checksum is wrong"
    OFFSETS = "offsets, number of records or sequence do not fit together, or a client may not write such a batch"


class RefusedBatchError(KafkaError):
    """A batch was rejected for a cause with a metric of its own."""

    def __init__(self, code: ErrorCode, detail: str, cause: Cause) -> None:
        super().__init__(code, detail)
        self.cause = cause


class RecordError(NamedTuple):
    """A rejected record: its index in the batch, and the reason (KIP-467)."""

    batch_index: int
    message: str


class InvalidRecordsError(KafkaError):
    """A batch was rejected because of some records; `keyless_records` of them lack a key."""

    def __init__(self, code: ErrorCode, detail: str, record_errors: list[RecordError], keyless_records: int) -> None:
        super().__init__(code, detail)
        self.record_errors = record_errors
        self.keyless_records = keyless_records


def not_a_clients(header: BatchHeader) -> KafkaError:
    """The error for a batch that no client may send: the first reason in Kafka's order."""
    if header.last_offset_delta < 0:
        detail = f"the last offset delta is {header.last_offset_delta}"
    elif header.records_count <= 0:
        detail = f"the batch claims {pluralize(header.records_count, 'record')}"
    elif header.records_count != header.last_offset_delta + 1:
        count = pluralize(header.records_count, "record")
        detail = f"the batch claims {count} and a last offset delta of {header.last_offset_delta}"
    elif header.is_control:
        detail = "clients may not write control batches"
    else:
        detail = f"producer {header.producer_id} sent sequence {header.base_sequence}"
    return RefusedBatchError(ErrorCode.INVALID_RECORD, detail, Cause.OFFSETS)


def check_room_for_records(section: memoryview, header: BatchHeader) -> None:
    """Reject a batch whose `section`, the bytes behind the header, cannot hold so many records.

    Kafka counts the records. Without this check a batch of 70 bytes could claim 2^31 offsets, and a segment.
    """
    codec = header.codec
    room = len(section)
    if codec:
        try:
            room = min(largest_decompressed_size(codec, section), max_decompressed_size(room))
        except RemoteProtocolError as error:
            raise not_decompressed(error) from None
    if header.records_count * SMALLEST_RECORD > room:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"the batch claims {pluralize(header.records_count, 'record')}, for which "
            f"{pluralize(len(section), 'byte')} have no room",
        )


def not_decompressed(error: RemoteProtocolError) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the records cannot be decompressed: {error}")


def not_one_batch(code: ErrorCode, detail: str) -> KafkaError:
    return RefusedBatchError(code, detail, Cause.NOT_ONE_BATCH)


def _entry_size(records: memoryview) -> int | None:
    """The bytes of the first batch or message, of any format, in `records`; None if it is not complete.

    Raises CORRUPT_MESSAGE for a length or magic that no format has.
    """
    if len(records) < LOG_OVERHEAD:
        return None
    length: int = _LENGTH.unpack_from(records, LENGTH_POSITION)[0]
    if length < MIN_LENGTHS[0]:  # of the smallest entry of any format
        raise not_one_batch(ErrorCode.CORRUPT_MESSAGE, f"a batch of length {length}")
    if len(records) <= MAGIC_POSITION:
        return None
    if records[MAGIC_POSITION] > MAGIC:
        raise not_one_batch(ErrorCode.CORRUPT_MESSAGE, f"magic {records[MAGIC_POSITION]} is unknown")
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= len(records) else None


def unreadable_header(records: WritableBatch, error: RemoteProtocolError) -> KafkaError:
    """The error for bytes that do not begin with the header of a batch of magic 2."""
    if _entry_size(memoryview(records)) is None:
        return not_one_batch(ErrorCode.INVALID_RECORD, "there is no complete batch")
    if records[MAGIC_POSITION] == MAGIC:
        return not_one_batch(ErrorCode.CORRUPT_MESSAGE, str(error))  # a length that the header alone exceeds
    return not_one_batch(
        ErrorCode.INVALID_RECORD, f"only batches of magic 2 are accepted, not {records[MAGIC_POSITION]}"
    )


def only_batch(records: WritableBatch, size: int) -> WritableBatch:
    """The first batch of `records`, of `size` bytes. Raises INVALID_RECORD if another batch follows it."""
    if size > len(records):
        raise not_one_batch(ErrorCode.INVALID_RECORD, "there is no complete batch")
    if _entry_size(memoryview(records)[size:]) is not None:
        raise not_one_batch(ErrorCode.INVALID_RECORD, "there is more than one batch")
    return memoryview(records)[:size]  # Kafka cuts off an incomplete batch at the end, too
