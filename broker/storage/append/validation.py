"""The checks of a client's batch, and the changes that a leader makes to it; as Kafka's `LogValidator`.

| fault                                                                | error                          |
|----------------------------------------------------------------------|--------------------------------|
| no complete batch; magic 0 or 1; more than one batch                 | INVALID_RECORD                 |
| a length or magic that no format has; a wrong checksum               | CORRUPT_MESSAGE                |
| base offset not 0; offsets and count disagree; no records            | INVALID_RECORD                 |
| more records than its bytes can hold, decompressed at the most       | INVALID_RECORD                 |
| a control batch from a client; a producer id without a sequence      | INVALID_RECORD                 |
| larger than `max.message.bytes`; expands to more than is allowed     | MESSAGE_TOO_LARGE              |
| larger than `segment.bytes`                                          | RECORD_LIST_TOO_LARGE          |
| a timestamp out of bounds, or marked as the broker's                 | INVALID_TIMESTAMP              |
| a record without a key in a compacted topic; malformed records       | INVALID_RECORD                 |
| an unknown codec; records that cannot be decompressed                | UNKNOWN_SERVER_ERROR           |

The checks have Kafka's order, so that a batch with several faults gets the same error. The table was compared with
Kafka 4.3.1.

# Differs from Kafka: with `record.validation=header` (the default) the records are decoded only if something depends on
them: a compacted topic, another codec than the producer's, a lower bound on timestamps. Otherwise malformed records
with a valid checksum are accepted, and the header's first and largest timestamps are used. The largest is computed from
the records if it is smaller than the first one, as in batches of kafkajs and kafka-go whose timestamps do not ascend.
Batches that this broker's coordinators have made are decoded only for another codec or LogAppendTime. Kafka always
decodes every record.

# Differs from Kafka: a batch that must be decoded and expands to more than `max_decompressed_size` is rejected with
MESSAGE_TOO_LARGE, so that Java's producer splits it, and an error names only the first `MOST_BLAMED` records, because a
few kilobytes can expand to gigabytes. Kafka has neither bound.

A timestamp that is more than 2^63 - 1 ms ago, such as -2^63, the "no time" of NumPy and pandas, is out of bounds unless
neither bound is set. Kafka finds it too far in the future, because its difference to now wraps.

# Differs from Kafka: where records are decoded, an uncompressed batch with offsets other than 0, 1, 2, … is rejected
with INVALID_RECORD, because no consumer could use them; Kafka appends such a batch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from odradek.broker.storage.append.refusals import (
    Cause,
    InvalidRecordsError,
    RecordError,
    RefusedBatchError,
    WritableBatch,
    check_room_for_records,
    not_a_clients,
    not_decompressed,
    only_batch,
    unreadable_header,
)
from odradek.broker.storage.log_config import (
    LOG_APPEND_TIME,
    NO_LIMIT,
    PRODUCER,
    RECORDS,
    UNCOMPRESSED,
    LogConfig,
)
from odradek.protocol.checksum import crc32c
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import DecompressionLimitError, ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_START,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    read_batch_header,
    stamp_create_time,
    stamp_log_append_time,
)
from odradek.protocol.records.recompression import recompress
from odradek.protocol.records.record_iterator import iter_records, records_section
from odradek.protocol.records.record_validation import (
    MOST_BLAMED,
    SMALLEST_RECORD,
    KeylessRecordsError,
    RecordTimestamps,
    validate_records,
)

_ZSTD: Final = int(Codec.ZSTD)  # saves 0.06 µs a batch for the attribute
_SHOWN_ERRORS: Final = 3
_ANY_AGE: Final = 1 << 64
_BROKER_TIME: Final = "producers may not say that timestamps are the broker's"


ValidBatch = tuple[WritableBatch, BatchHeader, int]
"""A batch to append: its bytes (the caller's, or new ones if it was compressed again) and their header.

The number is that of its records if it was compressed again, else 0.
"""


class BatchValidator:
    """The rules of one topic's configuration, prepared for many batches."""

    def __init__(self, config: LogConfig) -> None:
        self._max_batch_bytes = config.max_message_bytes
        self._segment_bytes = config.segment_bytes
        self._log_append_time = config.message_timestamp_type == LOG_APPEND_TIME
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        # As old as a batch may be whose records are not decoded.
        self._oldest_ms = NO_LIMIT if self._after_max_ms != NO_LIMIT else _ANY_AGE
        if self._before_max_ms == NO_LIMIT:
            self._before_max_ms = self._oldest_ms
        self._compacted = config.is_compacted
        self._codec = _target_codec(config.compression_type)
        self._levels: dict[Codec, int] = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }
        checks_oldest = not self._log_append_time and self._before_max_ms < NO_LIMIT
        self._always_walks = config.record_validation == RECORDS or self._compacted or checks_oldest
        self.decodes_records = self._always_walks or self._codec is not None  # of most batches
        self._keeps_batches = self._codec is None and not self._always_walks and not self._log_append_time

    def validate(
        self,
        records: WritableBatch,
        now_ms: int,
        from_client: bool = True,
        max_decompressed: int | None = None,
    ) -> ValidBatch:
        """Return the batch to append, with the topic's timestamps and codec; offsets are assigned later.

        Changes `records` in place where that is enough. Raises `KafkaError`; then nothing may be appended.
        `from_client` is false for the coordinators' own batches, which may be control batches, have no sequences, and
        whose records are not checked.
        With `max_decompressed`, raises DecompressionLimitError if records that must be decoded expand to more bytes,
        having changed nothing.
        """
        try:
            header = read_batch_header(records)
        except RemoteProtocolError as error:
            raise unreadable_header(records, error) from None
        size = header.batch_length + LOG_OVERHEAD
        if size != len(records):
            records = only_batch(records, size)
        attributes = header.attributes
        codec = attributes & CODEC_BITS
        if from_client and header.base_offset:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"the base offset must be 0, not {header.base_offset}")
        if size > self._max_batch_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, max.message.bytes is {self._max_batch_bytes}"
            )
        view = records if isinstance(records, memoryview) else memoryview(records)
        if crc32c(view[CRC_START:]) != header.crc:
            raise RefusedBatchError(ErrorCode.CORRUPT_MESSAGE, "the checksum of the batch is wrong", Cause.CHECKSUM)
        if codec > _ZSTD:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"compression codec {codec} is unknown")
        if from_client and (
            header.records_count != header.last_offset_delta + 1
            or header.records_count <= 0
            or attributes & CONTROL_BIT
            or (header.producer_id >= 0 and header.base_sequence < 0)
        ):
            raise not_a_clients(header)
        if header.records_count * SMALLEST_RECORD > size - BATCH_HEADER_SIZE:
            check_room_for_records(view[BATCH_HEADER_SIZE:], header)
        if (
            (self._keeps_batches or (not from_client and self._keeps_coordinators_batch(attributes)))
            and not attributes & TIMESTAMP_TYPE_BIT
            and header.base_timestamp <= header.max_timestamp
            and now_ms - header.base_timestamp <= self._oldest_ms
            and header.max_timestamp - now_ms <= self._after_max_ms
        ):
            converted = 0  # nearly every batch needs no change
        else:
            records, header, converted = self._apply(records, header, now_ms, max_decompressed)
        if len(records) > self._segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch has {len(records)} bytes, segment.bytes is {self._segment_bytes}",
            )
        return records, header, converted

    def _keeps_coordinators_batch(self, attributes: int) -> bool:
        """Return whether a batch that this broker has made itself needs no change: its records are well-formed."""
        return not self._log_append_time and (
            self._codec is None or attributes & CODEC_BITS == self._codec or bool(attributes & CONTROL_BIT)
        )

    def _apply(
        self, records: WritableBatch, header: BatchHeader, now_ms: int, max_decompressed: int | None
    ) -> ValidBatch:
        """Set timestamps and codec of a batch that passed all other checks."""
        attributes = header.attributes
        changes_codec = (
            self._codec is not None and attributes & CODEC_BITS != self._codec and not attributes & CONTROL_BIT
        )
        if self._always_walks or changes_codec:
            return self._walk(records, header, now_ms, changes_codec, max_decompressed)
        if self._log_append_time:
            if header.has_append_time:
                raise KafkaError(ErrorCode.INVALID_TIMESTAMP, _BROKER_TIME)
            stamp_log_append_time(records, 0, header, now_ms)
            return records, read_batch_header(records), 0
        max_timestamp = header.max_timestamp
        if (
            max_timestamp - now_ms > self._after_max_ms
            or max_timestamp < header.base_timestamp
            or now_ms - header.base_timestamp > self._oldest_ms
        ):
            # The header may be wrong, and an error names the records.
            return self._walk(records, header, now_ms, changes_codec=False, max_decompressed=max_decompressed)
        if header.has_append_time:
            return self._set_create_time(records, header, max_timestamp)
        return records, header, 0

    def _walk(
        self,
        records: WritableBatch,
        header: BatchHeader,
        now_ms: int,
        changes_codec: bool,
        max_decompressed: int | None,
    ) -> ValidBatch:
        """Check every record, and give the batch the topic's codec."""
        try:
            found = validate_records(
                records, 0, header, require_keys=self._compacted, max_decompressed=max_decompressed
            )
        except DecompressionLimitError as error:
            if max_decompressed is not None:
                raise
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
        except RemoteProtocolError as error:
            raise self._invalid_records(records, header, now_ms, error) from error
        if not self._timestamps_are_fine(found, header, now_ms):
            raise self._invalid_records(records, header, now_ms, None)
        converted = 0
        if changes_codec:
            records = self._recompress(records, header)
            header = read_batch_header(records)
            converted = header.records_count
        if self._log_append_time:
            stamp_log_append_time(records, 0, header, now_ms)
            return records, read_batch_header(records), converted
        if found.max_timestamp != header.max_timestamp or header.has_append_time:
            return self._set_create_time(records, header, found.max_timestamp, converted)
        return records, header, converted

    def _timestamps_are_fine(self, found: RecordTimestamps, header: BatchHeader, now_ms: int) -> bool:
        if self._log_append_time:
            return not header.has_append_time
        if found.max_timestamp == NO_TIMESTAMP and header.has_append_time:
            return False
        has_timestamps = found.min_timestamp != NO_TIMESTAMP
        return found.max_timestamp - now_ms <= self._after_max_ms and not (
            has_timestamps and now_ms - found.min_timestamp > self._before_max_ms
        )

    def _invalid_records(
        self, records: WritableBatch, header: BatchHeader, now_ms: int, cause: RemoteProtocolError | None
    ) -> KafkaError:
        """The error with a reason for each rejected record; without such reasons, that of `cause`."""
        try:
            records_section(records, 0, header)
        except RemoteProtocolError as error:
            return not_decompressed(error)
        code = ErrorCode.INVALID_RECORD
        errors = []
        keyless = 0
        try:
            for index, record in enumerate(iter_records(records, 0, header)):
                if self._compacted and record.key is None:
                    keyless += 1
                    errors.append(RecordError(index, "a compacted topic takes no record without a key"))
                elif (problem := self._timestamp_problem(record.timestamp, header, now_ms)) is not None:
                    code = ErrorCode.INVALID_TIMESTAMP
                    errors.append(RecordError(index, problem))
                if len(errors) == MOST_BLAMED:
                    break
        except RemoteProtocolError as error:
            return KafkaError(ErrorCode.INVALID_RECORD, f"the records do not parse: {error}")
        if not errors:
            return KafkaError(ErrorCode.INVALID_RECORD, f"the records do not parse: {cause}")
        if isinstance(cause, KeylessRecordsError):
            keyless = cause.count
        shown = "; ".join(f"record {index}: {message}" for index, message in errors[:_SHOWN_ERRORS])
        found = f"{len(errors)}{' or more' if len(errors) == MOST_BLAMED else ''}"
        detail = f"{found} of {pluralize(header.records_count, 'record')} refused: {shown}"
        return InvalidRecordsError(code, detail, errors, keyless)

    def _timestamp_problem(self, timestamp: int, header: BatchHeader, now_ms: int) -> str | None:
        if not self._log_append_time and timestamp != NO_TIMESTAMP:
            is_fine = timestamp - now_ms <= self._after_max_ms and now_ms - timestamp <= self._before_max_ms
            return None if is_fine else self._out_of_bounds(timestamp, now_ms)
        return _BROKER_TIME if header.has_append_time else None

    def _recompress(self, records: WritableBatch, header: BatchHeader) -> WritableBatch:
        codec = self._codec
        assert codec is not None
        data = recompress(records, 0, header, codec, self._levels.get(codec))
        if len(data) > self._max_batch_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"compressed with {codec.name.lower()} the batch has {len(data)} bytes, "
                f"max.message.bytes is {self._max_batch_bytes}",
            )
        return data

    def _set_create_time(
        self, records: WritableBatch, header: BatchHeader, max_timestamp: int, converted: int = 0
    ) -> ValidBatch:
        """Mark the timestamps as the producer's, `max_timestamp` being the largest."""
        if max_timestamp == NO_TIMESTAMP and header.has_append_time:
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, _BROKER_TIME)
        stamp_create_time(records, 0, header, max_timestamp)
        return records, read_batch_header(records), converted

    def _out_of_bounds(self, timestamp: int, now_ms: int) -> str:
        oldest, newest = now_ms - self._before_max_ms, now_ms + self._after_max_ms
        return f"timestamp {timestamp} is not within [{oldest}, {newest}]"


@lru_cache(maxsize=1000)  # topics with properties of their own; the partitions of all others share one
def validator_for(config: LogConfig) -> BatchValidator:
    return BatchValidator(config)


def _target_codec(compression_type: str) -> Codec | None:
    """The codec that batches must have; None for the producer's."""
    if compression_type == PRODUCER:
        return None
    return Codec.NONE if compression_type == UNCOMPRESSED else Codec[compression_type.upper()]
