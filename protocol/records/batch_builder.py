"""A builder of record batches (magic 2): `append` encodes a record, `build` compresses them and adds the header.

A record of 100 bytes takes 0.5 µs to append, one with two headers 1.2 µs (`benchmarks/records.py`): lengths come from a
table, and one join concatenates the record.

The layouts are drawn in `odradek.protocol.records.batch_header` and `odradek.protocol.records.record_iterator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek.protocol.compression.codecs import Codec, compress
from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CONTROL_BIT,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    TimestampType,
    write_header,
)
from odradek.protocol.records.record_headers import Header, encode_headers
from odradek.protocol.varint import INT64_MAX, INT64_MIN, SHORT_VARINTS, encode_varint, wrapped

_SHORT: Final = len(SHORT_VARINTS)
_NULL: Final = encode_varint(-1)
_MAX_LENGTH: Final = (1 << 31) - 1


class BatchBuilder:
    """Collects the records of one batch.

    `build` changes nothing, so it may be called again: after more records, or with another `codec`, `producer_id`,
    `producer_epoch` or `base_sequence`, which may be assigned at any time (a producer sets them when it sends). Not
    thread-safe.
    """

    __slots__ = (
        "_attributes",
        "_base_timestamp",
        "_last_offset_delta",
        "_level",
        "_max_timestamp",
        "_records",
        "base_sequence",
        "codec",
        "producer_epoch",
        "producer_id",
        "records_count",
    )

    def __init__(
        self,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    ) -> None:
        self.codec = codec
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.records_count = 0
        self._level = level
        self._attributes = (
            (TIMESTAMP_TYPE_BIT if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
        )
        self._records = bytearray()
        self._last_offset_delta = -1
        self._base_timestamp = -1
        self._max_timestamp = -1

    @property
    def size_estimate(self) -> int:
        """The size in bytes that the batch would have without compression."""
        return BATCH_HEADER_SIZE + len(self._records)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        offset_delta: int | None = None,
    ) -> int:
        """Add a record; `timestamp` in ms. Without `offset_delta` its offset is one above that of the record before.

        Returns the new `size_estimate`.

        Raises LocalProtocolError for a timestamp or size that the format cannot represent, or an offset that is not
        above the one before; the batch is then unchanged.
        """
        if not INT64_MIN <= timestamp <= INT64_MAX:
            raise LocalProtocolError(f"the timestamp {timestamp} does not fit into 64 bits")
        count = self.records_count
        if offset_delta is None:
            offset_delta = self._last_offset_delta + 1
        elif not self._last_offset_delta < offset_delta <= _MAX_LENGTH:
            raise LocalProtocolError(f"offset delta {offset_delta} after {self._last_offset_delta}")
        timestamp_delta = timestamp - self._base_timestamp if count else 0
        if key is None:
            key_length, key = _NULL, b""
        else:
            length = len(key)
            key_length = SHORT_VARINTS[length] if length < _SHORT else encode_varint(length)
        if value is None:
            value_length, value = _NULL, b""
        else:
            length = len(value)
            value_length = SHORT_VARINTS[length] if length < _SHORT else encode_varint(length)
        body = b"".join(
            (
                b"\0",
                SHORT_VARINTS[timestamp_delta]
                if 0 <= timestamp_delta < _SHORT
                else encode_varint(wrapped(timestamp_delta)),
                SHORT_VARINTS[offset_delta] if offset_delta < _SHORT else encode_varint(offset_delta),
                key_length,
                key,
                value_length,
                value,
                encode_headers(headers) if headers else b"\0",
            )
        )
        length = len(body)
        records = self._records
        if length + len(records) > _MAX_LENGTH - BATCH_HEADER_SIZE:
            raise LocalProtocolError("a record batch cannot take more than 2 GiB")
        if not count:
            encode_varint(timestamp)  # raises TypeError unless it is an integer; the delta of later ones does
            self._base_timestamp = self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        records += SHORT_VARINTS[length] if length < _SHORT else encode_varint(length)
        records += body
        self._last_offset_delta = offset_delta
        self.records_count = count + 1
        return BATCH_HEADER_SIZE + len(records)

    def build(self, base_offset: int = 0, leader_epoch: int = -1) -> bytearray:
        """Return the batch of the records appended so far, offset delta 0 at `base_offset`.

        Raises LocalProtocolError if there are none, or a number is wider than its field.
        """
        if not self.records_count:
            raise LocalProtocolError("a batch of no records")
        records = compress(self.codec, self._records, self._level) if self.codec else self._records
        out = bytearray(BATCH_HEADER_SIZE)
        out += records
        header = BatchHeader(
            base_offset=base_offset,
            batch_length=len(out) - LOG_OVERHEAD,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=self._attributes | self.codec,
            last_offset_delta=self._last_offset_delta,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            records_count=self.records_count,
        )
        write_header(out, header)
        return out
