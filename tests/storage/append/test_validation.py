"""The rejections of a leader. Kafka 4.3.1 answered the same codes to the same bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.storage.append.refusals import InvalidRecordsError
from odradek.broker.storage.append.validation import BatchValidator
from odradek.broker.storage.log_config import NO_LIMIT, LogConfig
from odradek.protocol.compression.codecs import Codec, compress
from odradek.protocol.errors import DecompressionLimitError, ErrorCode, KafkaError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    TimestampType,
    crc_is_valid,
    read_batch_header,
    write_crc,
)
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.records.record_validation import MOST_BLAMED
from tests.storage.logs import NOW, batch

OK = None
INVALID_RECORD = ErrorCode.INVALID_RECORD
CORRUPT_MESSAGE = ErrorCode.CORRUPT_MESSAGE
INVALID_TIMESTAMP = ErrorCode.INVALID_TIMESTAMP
MESSAGE_TOO_LARGE = ErrorCode.MESSAGE_TOO_LARGE
UNKNOWN_SERVER_ERROR = ErrorCode.UNKNOWN_SERVER_ERROR

GOOD = bytes(batch(b"v"))
SMALL = {"max_message_bytes": 1000}
COMPACTED = {"cleanup_policy": frozenset({"compact"})}
BROKER_TIME = {"message_timestamp_type": "LogAppendTime"}
NOT_OLD = {"message_timestamp_before_max_ms": 50_000}
DEEP = {"record_validation": "records"}
UNBOUNDED = {"message_timestamp_after_max_ms": NO_LIMIT}


def poked(
    *changes: tuple[str, int, int], crc: bool = True, values: tuple[bytes, ...] = (b"v",), **fields: Any
) -> bytes:
    """A batch with numbers of these formats written to these positions, and the checksum made to match."""
    data = bytearray(batch(*values, **fields))
    for layout, position, value in changes:
        struct.pack_into(layout, data, position, value)
    if crc:
        write_crc(data, 0, len(data))
    return bytes(data)


def garbled(codec: Codec) -> bytes:
    data = bytearray(batch(b"v" * 100, codec=codec))
    data[BATCH_HEADER_SIZE : BATCH_HEADER_SIZE + 10] = b"\xff" * 10
    write_crc(data, 0, len(data))
    return bytes(data)


def out_of_place(codec: Codec) -> bytes:
    """One record, with offset delta 9 where it should be 0."""
    section = bytearray(GOOD[BATCH_HEADER_SIZE:])
    section[3] = 18
    data = bytearray(GOOD[:BATCH_HEADER_SIZE]) + compress(codec, section)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, codec)
    write_crc(data, 0, len(data))
    return bytes(data)


def old_after_none(timestamp: int = -5) -> bytes:
    builder = BatchBuilder()
    builder.append(-1, b"k", b"v")
    builder.append(timestamp, b"k", b"v")
    return bytes(builder.build())


def message(magic: int) -> bytes:
    stamp = struct.pack(">q", NOW) if magic else b""
    body = struct.pack(">bb", magic, 0) + stamp + struct.pack(">i1si1s", 1, b"k", 1, b"v")
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def saying(count: int, codec: Codec) -> bytes:
    """A batch of one record that says to have `count`."""
    return poked((">i", 23, count - 1), (">i", 57, count), codec=codec)


CASES: list[tuple[str, bytes, ErrorCode | None, dict[str, Any]]] = [
    ("a good batch", GOOD, OK, {}),
    ("nothing", b"", INVALID_RECORD, {}),
    ("5 bytes", GOOD[:5], INVALID_RECORD, {}),
    ("20 bytes", GOOD[:20], INVALID_RECORD, {}),
    ("a byte less than a header", GOOD[:60], INVALID_RECORD, {}),
    ("a byte less than a batch", GOOD[:-1], INVALID_RECORD, {}),
    ("a few bytes behind", GOOD + b"abcde", OK, {}),
    ("zeros behind", GOOD + bytes(30), CORRUPT_MESSAGE, {}),
    ("a piece of a batch behind", GOOD + GOOD[:40], OK, {}),
    ("two batches", GOOD + GOOD, INVALID_RECORD, {}),
    ("magic 0", message(0), INVALID_RECORD, {}),
    ("magic 1", message(1), INVALID_RECORD, {}),
    ("magic 3", poked((">b", 16, 3)), CORRUPT_MESSAGE, {}),
    ("magic -1", poked((">b", 16, -1)), CORRUPT_MESSAGE, {}),
    ("length 13", poked((">i", 8, 13)), CORRUPT_MESSAGE, {}),
    ("length 40", poked((">i", 8, 40)), CORRUPT_MESSAGE, {}),
    ("length -1", poked((">i", 8, -1)), CORRUPT_MESSAGE, {}),
    ("base offset 5", poked((">q", 0, 5)), INVALID_RECORD, {}),
    ("a wrong checksum", poked((">I", 17, 1), crc=False), CORRUPT_MESSAGE, {}),
    ("a wrong checksum and base offset", poked((">I", 17, 1), (">q", 0, 5), crc=False), INVALID_RECORD, {}),
    ("last offset delta -1", poked((">i", 23, -1)), INVALID_RECORD, {}),
    ("last offset delta 3 of one record", poked((">i", 23, 3)), INVALID_RECORD, {}),
    ("count 0", poked((">i", 57, 0)), INVALID_RECORD, {}),
    ("count -1", poked((">i", 57, -1)), INVALID_RECORD, {}),
    ("one record said to be two", poked((">i", 23, 1), (">i", 57, 2)), INVALID_RECORD, DEEP),
    ("two records said to be one", poked((">i", 23, 0), (">i", 57, 1), values=(b"a", b"b")), INVALID_RECORD, DEEP),
    ("one record said to be two, unseen", poked((">i", 23, 1), (">i", 57, 2), values=(b"not short",)), OK, {}),
    ("one record said to be two, for which there is no room", poked((">i", 23, 1), (">i", 57, 2)), INVALID_RECORD, {}),
    *(
        (f"one record said to be 2^31 - 1, {codec.name}", saying(2**31 - 1, codec), INVALID_RECORD, {})
        for codec in Codec
    ),
    ("a control batch", poked(is_control=True), INVALID_RECORD, {}),
    ("a producer without a sequence", poked(producer_id=5, producer_epoch=0), INVALID_RECORD, {}),
    ("a sequence without a producer", poked(base_sequence=3), OK, {}),
    ("codec 5", poked((">h", 21, 5)), UNKNOWN_SERVER_ERROR, {}),
    ("codec 7", poked((">h", 21, 7)), UNKNOWN_SERVER_ERROR, {}),
    ("garbled gzip", garbled(Codec.GZIP), UNKNOWN_SERVER_ERROR, DEEP),
    ("garbled snappy", garbled(Codec.SNAPPY), UNKNOWN_SERVER_ERROR, DEEP),
    ("garbled lz4", garbled(Codec.LZ4), UNKNOWN_SERVER_ERROR, DEEP),
    ("garbled zstd", garbled(Codec.ZSTD), UNKNOWN_SERVER_ERROR, DEEP),
    ("garbled records", garbled(Codec.NONE), INVALID_RECORD, DEEP),
    ("garbled records, unseen", garbled(Codec.NONE), OK, {}),
    ("garbled lz4 to become gzip", garbled(Codec.LZ4), UNKNOWN_SERVER_ERROR, {"compression_type": "gzip"}),
    ("an offset delta out of place", out_of_place(Codec.NONE), INVALID_RECORD, DEEP),
    ("an offset delta out of place, gzip", out_of_place(Codec.GZIP), INVALID_RECORD, DEEP),
    ("a broker's timestamp", poked((">h", 21, 8)), OK, {}),
    ("a broker's timestamp that is none", poked((">h", 21, 8), timestamp=-1), INVALID_TIMESTAMP, {}),
    ("no timestamp", poked(timestamp=-1), OK, {}),
    ("a timestamp of the future", poked(timestamp=NOW + 3_700_000), INVALID_TIMESTAMP, {}),
    ("a timestamp of the near future", poked(timestamp=NOW + 3_600_000), OK, {}),
    ("only the header's timestamp is of the future", poked((">q", 35, NOW + 10**9)), OK, {}),
    ("no time, in NumPy's words", poked(timestamp=-(1 << 63)), INVALID_TIMESTAMP, {}),
    ("the same, seen deeply", poked(timestamp=-(1 << 63)), INVALID_TIMESTAMP, DEEP),
    ("the same, compacted", poked(timestamp=-(1 << 63)), INVALID_TIMESTAMP, COMPACTED),
    ("the same, where the past has a bound", poked(timestamp=-(1 << 63)), INVALID_TIMESTAMP, NOT_OLD),
    ("the same, which the broker sets", poked(timestamp=-(1 << 63)), OK, BROKER_TIME),
    ("the same, without any bound", poked(timestamp=-(1 << 63)), OK, UNBOUNDED),
    ("the same, without any bound, seen deeply", poked(timestamp=-(1 << 63)), OK, UNBOUNDED | DEEP),
    ("almost 2^63 ms ago", poked(timestamp=NOW + 1 - (1 << 63)), OK, {}),
    ("the same, a millisecond earlier", poked(timestamp=NOW - (1 << 63)), INVALID_TIMESTAMP, {}),
    ("before 1970", poked(timestamp=-2), OK, {}),
    ("too old, after a record without a timestamp", old_after_none(), INVALID_TIMESTAMP, NOT_OLD),
    ("2^63 ms ago, after a record without a timestamp", old_after_none(-(1 << 63)), INVALID_TIMESTAMP, DEEP),
    ("the end of time", poked(timestamp=(1 << 63) - 1), INVALID_TIMESTAMP, {}),
    ("the end of time, without any bound", poked(timestamp=(1 << 63) - 1), OK, UNBOUNDED),
    ("an unused attribute", poked((">h", 21, 1 << 9)), OK, {}),
    ("a delete horizon", poked((">h", 21, 1 << 6)), OK, {}),
    ("a leader epoch", poked((">i", 12, 9)), OK, {}),
    ("too large", poked(values=(b"x" * 2000,)), MESSAGE_TOO_LARGE, SMALL),
    ("too large, wrong checksum", poked((">I", 17, 1), crc=False, values=(b"x" * 2000,)), MESSAGE_TOO_LARGE, SMALL),
    ("too large, base offset 5", poked((">q", 0, 5), values=(b"x" * 2000,)), INVALID_RECORD, SMALL),
    ("too large, a control batch", poked(values=(b"x" * 2000,), is_control=True), MESSAGE_TOO_LARGE, SMALL),
    ("larger than a segment", poked(values=(b"x" * 2000,)), ErrorCode.RECORD_LIST_TOO_LARGE, {"segment_bytes": 2000}),
    ("no key", poked(key=None), OK, {}),
    ("no key, compacted", poked(key=None), INVALID_RECORD, COMPACTED),
    ("no key, of the future, compacted", poked(key=None, timestamp=NOW + 3_700_000), INVALID_RECORD, COMPACTED),
    ("of the future, compacted", poked(timestamp=NOW + 3_700_000), INVALID_TIMESTAMP, COMPACTED),
    ("a broker's timestamp, which the broker sets", poked((">h", 21, 8)), INVALID_TIMESTAMP, BROKER_TIME),
    ("the same, seen deeply", poked((">h", 21, 8)), INVALID_TIMESTAMP, BROKER_TIME | DEEP),
    ("a timestamp of the future, which the broker sets", poked(timestamp=NOW + 3_700_000), OK, BROKER_TIME),
    ("too old", poked(timestamp=NOW - 100_000), INVALID_TIMESTAMP, NOT_OLD),
    ("just not too old", poked(timestamp=NOW - 50_000), OK, NOT_OLD),
    ("too old, which the broker sets", poked(timestamp=NOW - 100_000), OK, NOT_OLD | BROKER_TIME),
]


@pytest.mark.parametrize(("data", "code", "properties"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_code_is_kafkas(data: bytes, code: ErrorCode | None, properties: dict[str, Any]) -> None:
    validator = BatchValidator(LogConfig(**properties))
    if code is None:
        valid, header, _ = validator.validate(bytearray(data), NOW)
        assert crc_is_valid(valid, 0, header)
        assert header == read_batch_header(valid)
        assert len(valid) == header.size
    else:
        with pytest.raises(KafkaError) as caught:
            validator.validate(bytearray(data), NOW)
        assert caught.value.code is code
        assert caught.value.detail


@pytest.mark.parametrize("data", [GOOD, bytes(batch(b"a", b"b", codec=Codec.ZSTD, timestamp=NOW - 5))])
@pytest.mark.parametrize("properties", [{}, DEEP, COMPACTED, NOT_OLD])
def test_a_valid_batch_is_not_changed(data: bytes, properties: dict[str, Any]) -> None:
    buffer = bytearray(data)
    assert BatchValidator(LogConfig(**properties)).validate(buffer, NOW)[0] is buffer
    assert buffer == data


def test_every_rejected_record_is_named() -> None:
    builder = BatchBuilder()
    for key, timestamp in [(b"k", NOW), (None, NOW), (b"k", NOW + 10**8), (None, NOW)]:
        builder.append(timestamp, key, b"v")
    with pytest.raises(InvalidRecordsError) as caught:
        BatchValidator(LogConfig(**COMPACTED)).validate(builder.build(), NOW)
    assert [error.batch_index for error in caught.value.record_errors] == [1, 2, 3]
    assert caught.value.code is INVALID_TIMESTAMP
    assert caught.value.keyless_records == 2


def keyless(count: int, codec: Codec = Codec.NONE) -> bytearray:
    builder = BatchBuilder(codec=codec)
    for _ in range(count):
        builder.append(NOW, None, None)
    return builder.build()


def test_of_many_rejected_records_the_first_are_named_and_all_counted() -> None:
    with pytest.raises(InvalidRecordsError) as caught:
        BatchValidator(LogConfig(**COMPACTED)).validate(keyless(MOST_BLAMED + 50), NOW)
    assert [error.batch_index for error in caught.value.record_errors] == list(range(MOST_BLAMED))
    assert caught.value.keyless_records == MOST_BLAMED + 50


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_records_that_compress_well_have_room(codec: Codec) -> None:
    data = keyless(10_000, codec)
    assert len(data) < 7 * 10_000
    assert BatchValidator(LogConfig()).validate(data, NOW)[0] is data


def bomb(size: int) -> bytearray:
    """A batch of one record, whose value are `size` zeros, with zstd."""
    builder = BatchBuilder(codec=Codec.ZSTD)
    builder.append(NOW, b"k", bytes(size))
    return builder.build()


@pytest.mark.parametrize("properties", [COMPACTED, DEEP, {"compression_type": "gzip"}])
def test_records_that_expand_to_more_than_any_reader_takes_are_too_large(properties: dict[str, Any]) -> None:
    with pytest.raises(KafkaError) as caught:
        BatchValidator(LogConfig(**properties)).validate(bomb(128 << 20), NOW)
    assert caught.value.code is MESSAGE_TOO_LARGE


@pytest.mark.parametrize("properties", [COMPACTED, DEEP, {"compression_type": "gzip"}])
def test_a_caller_may_set_a_lower_limit_and_retry_without_it(properties: dict[str, Any]) -> None:
    data = bomb(1 << 20)
    before = bytes(data)
    validator = BatchValidator(LogConfig(**properties))
    with pytest.raises(DecompressionLimitError):
        validator.validate(data, NOW, max_decompressed=64 * 1024)
    assert data == before
    assert validator.validate(data, NOW)[1].records_count == 1


def test_coordinators_may_write_control_batches_and_need_no_sequences() -> None:
    validator = BatchValidator(LogConfig(**COMPACTED, compression_type="gzip"))
    data = poked(is_control=True, producer_id=5, producer_epoch=0)
    valid, _, _ = validator.validate(bytearray(data), NOW, from_client=False)
    assert valid == data  # control batches are never compressed


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_the_records_of_coordinators_are_not_decoded_in_compacted_topics(codec: Codec) -> None:
    validator = BatchValidator(LogConfig(**COMPACTED))
    data = garbled(codec)
    valid, _, _ = validator.validate(bytearray(data), NOW, from_client=False)
    assert valid == data
    with pytest.raises(KafkaError):
        validator.validate(bytearray(data), NOW)


def test_the_records_of_coordinators_get_the_topics_codec_and_timestamps() -> None:
    data = bytes(batch(b"v", producer_id=5, producer_epoch=0))
    validator = BatchValidator(LogConfig(**COMPACTED, **BROKER_TIME, compression_type="gzip"))
    valid, header, _ = validator.validate(bytearray(data), NOW, from_client=False)
    assert (header.codec, header.has_append_time, header.max_timestamp) == (Codec.GZIP, True, NOW)
    assert crc_is_valid(valid, 0, header)


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", list(Codec))
def test_batches_get_the_topics_codec(source: Codec, target: str) -> None:
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 9, "is_transactional": True}
    data = bytes(batch(b"a" * 50, None, b"c" * 50, codec=source, **fields))
    valid, header, _ = BatchValidator(LogConfig(compression_type=target)).validate(bytearray(data), NOW)
    wanted = Codec.NONE if target == "uncompressed" else Codec[target.upper()]
    assert header.codec is wanted
    if source is wanted:
        assert valid == data
    assert crc_is_valid(valid, 0, header)
    before = list(iter_records(data, 0, read_batch_header(data)))
    assert list(iter_records(valid, 0, header)) == before
    unchanged: Callable[[Any], Any] = lambda header: header.replace(batch_length=0, crc=0, attributes=0)  # noqa: E731
    assert unchanged(header) == unchanged(read_batch_header(data))
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (7, 9, True)


def test_a_batch_that_grows_too_large_by_its_new_codec_is_refused() -> None:
    data = bytearray(batch(b"a" * 5000, codec=Codec.GZIP))
    with pytest.raises(KafkaError) as caught:
        BatchValidator(LogConfig(compression_type="uncompressed", **SMALL)).validate(data, NOW)
    assert caught.value.code is MESSAGE_TOO_LARGE


@pytest.mark.parametrize("properties", [{}, DEEP, COMPACTED, {"compression_type": "lz4"}])
def test_the_broker_stamps_its_time(properties: dict[str, Any]) -> None:
    validator = BatchValidator(LogConfig(**BROKER_TIME, **properties))
    valid, header, _ = validator.validate(bytearray(batch(b"a", b"b", timestamp=5)), NOW + 3)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == NOW + 3
    assert crc_is_valid(valid, 0, header)
    assert [record.timestamp for record in iter_records(valid, 0, header)] == [NOW + 3, NOW + 3]


@pytest.mark.parametrize("properties", [{}, DEEP])
def test_a_log_append_time_from_a_producer_becomes_create_time(properties: dict[str, Any]) -> None:
    data = poked((">h", 21, 8), values=(b"a", b"b"))
    valid, header, _ = BatchValidator(LogConfig(**properties)).validate(bytearray(data), NOW)
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert crc_is_valid(valid, 0, header)


def test_a_largest_timestamp_that_is_smaller_than_the_first_is_corrected() -> None:
    data = bytearray(poked((">q", 35, NOW - 77), timestamp=NOW))
    valid, header, _ = BatchValidator(LogConfig()).validate(data, NOW)
    assert header.max_timestamp == NOW
    assert crc_is_valid(valid, 0, header)


def test_a_wrong_largest_timestamp_is_corrected_where_records_are_decoded() -> None:
    data = bytearray(poked((">q", 35, NOW - 77)))
    assert BatchValidator(LogConfig(**DEEP)).validate(data, NOW)[1].max_timestamp == NOW
