"""For any bytes, validation and the iterator both accept the records or both raise RemoteProtocolError."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    TimestampType,
    batch_headers,
    read_batch_header,
)
from odradek.protocol.records.recompression import recompress
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.records.record_validation import KeylessRecordsError, RecordTimestamps, validate_records
from tests.effort import some
from tests.protocol.records import golden

NAMES = golden.kafka_files(2)
BASE_TIMESTAMPS = [0, -1, golden.BASE_TIMESTAMP, (1 << 63) - 1, -(1 << 63)]


def batch(section: bytes, records_count: int, base_timestamp: int = 0) -> tuple[bytes, BatchHeader]:
    """Return a batch with these bytes as its records."""
    header = BatchHeader(0, 49 + len(section), 0, 2, 0, 0, 0, base_timestamp, 0, -1, -1, -1, records_count)
    return struct.pack(">qiibIhiqqqhii", *header.fields) + section, header


def iterated(data: bytes, header: BatchHeader) -> list[Record] | None:
    try:
        return list(iter_records(data, 0, header, 1 << 20))
    except RemoteProtocolError:
        return None


def validated(data: bytes, header: BatchHeader) -> RecordTimestamps | None:
    try:
        return validate_records(data, 0, header, max_decompressed=1 << 20)
    except RemoteProtocolError:
        return None


def check_that_validation_and_the_iterator_agree(data: bytes, header: BatchHeader) -> None:
    records = iterated(data, header)
    found = validated(data, header)
    if records is None or [r.offset - header.base_offset for r in records] != list(range(len(records))):
        assert found is None
        return
    assert found is not None
    if records:
        largest = max(record.timestamp for record in records)
        assert found.max_timestamp == largest
        assert found.max_timestamp_offset == next(r.offset for r in records if r.timestamp == largest)
        assert found.min_timestamp == min((r.timestamp for r in records if r.timestamp != -1), default=-1)


@pytest.mark.parametrize("name", NAMES)
def test_every_strict_prefix_is_refused(name: str) -> None:
    data = golden.kafka_bytes(name)
    header = read_batch_header(data)
    for end in range(len(data)):
        assert list(batch_headers(data[:end])) == []
        if end >= BATCH_HEADER_SIZE:
            assert iterated(data[:end], header) is None
            assert validated(data[:end], header) is None


@pytest.mark.parametrize("end", some(range(BATCH_HEADER_SIZE, 712, 3)))
def test_truncated_records_with_a_matching_batch_length_are_refused(end: int) -> None:
    data = golden.kafka_bytes("v2-none")
    header = read_batch_header(data).replace(batch_length=end - 12)
    assert iterated(data[:end], header) is None
    assert validated(data[:end], header) is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [-20, -1, 1, 1 << 30])
def test_a_count_that_is_not_the_number_of_records_is_refused(name: str, change: int) -> None:
    data = golden.kafka_bytes(name)
    header = read_batch_header(data)
    header = header.replace(records_count=header.records_count + change)
    assert iterated(data, header) is None
    assert validated(data, header) is None


@given(
    st.sampled_from(NAMES),
    st.sampled_from(BASE_TIMESTAMPS),
    st.lists(st.tuples(st.integers(0), st.integers(1, 255)), max_size=3),
)
@example("v2-none-append-time", -(1 << 63), [])
def test_flipped_bits_are_read_or_refused_alike(name: str, base_timestamp: int, flips: list[tuple[int, int]]) -> None:
    data = bytearray(golden.kafka_bytes(name))
    for at, mask in flips:
        data[BATCH_HEADER_SIZE + at % (len(data) - BATCH_HEADER_SIZE)] ^= mask
    check_that_validation_and_the_iterator_agree(data, read_batch_header(data).replace(base_timestamp=base_timestamp))


@given(st.binary(max_size=80), st.integers(-1, 4), st.sampled_from(BASE_TIMESTAMPS))
@example(b"\x0c\x00\x00\x00\x01\x01\x00", 1, 0)
def test_random_bytes_are_read_or_refused_alike(section: bytes, count: int, base_timestamp: int) -> None:
    check_that_validation_and_the_iterator_agree(*batch(section, count, base_timestamp))


# Records with small errors: lengths of all signs and sizes at the places of lengths.
LENGTH = st.sampled_from([b"\x00", b"\x01", b"\x02", b"\x03", b"\x7e", b"\x80\x01", b"\x81\x01", b"\x80\x80\x01"])
LONG = st.sampled_from(
    [b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x1f", b"\x80" * 5, b"\x80"]
)


@given(st.lists(st.lists(LENGTH | LONG | st.binary(max_size=2), min_size=4, max_size=8), min_size=1, max_size=3))
def test_records_of_odd_lengths_are_read_or_refused_alike(records: list[list[bytes]]) -> None:
    section = b""
    for pieces in records:
        body = b"\x00" + b"".join(pieces)
        section += bytes([2 * len(body)]) + body if len(body) < 64 else b"\x00"
    check_that_validation_and_the_iterator_agree(*batch(section, len(records)))


@given(st.binary(max_size=200))
def test_random_bytes_as_batches(data: bytes) -> None:
    try:
        for position, header in batch_headers(data):
            list(iter_records(data, position, header))
    except RemoteProtocolError:
        pass


@given(st.integers(0, 60), st.integers(1, 255), st.sampled_from(NAMES))
def test_a_changed_header_is_read_or_refused(at: int, mask: int, name: str) -> None:
    data = bytearray(golden.kafka_bytes(name))
    data[at] ^= mask
    try:
        for position, header in batch_headers(data):
            list(iter_records(data, position, header, 1 << 20))
            recompress(data, position, header, Codec.ZSTD)
    except RemoteProtocolError:
        pass


def test_a_negative_length_other_than_minus_one_is_null_as_for_kafka() -> None:
    section = bytes([2 * 6]) + b"\x00\x00\x00" + b"\x03" + b"\x05" + b"\x00"
    data, header = batch(section, 1)
    assert iterated(data, header) == [Record(0, 0, None, None, [])]


@pytest.mark.parametrize(
    "headers",
    [
        "01",  # a count of -1
        "08 00",  # a count of 4 in one byte
        "02 01 00",  # a key of -1
        "02 04 61 00",  # a key that reaches into the length of its value
        "02 10 61 00",  # a key longer than the record
        "02 02 61 04 61",  # a value longer than the record
        "02 02 61 fe ff ff ff 0f",  # a value of 2 GiB
        "02 02 61 02 61 00",  # a byte after the last header
        "04 02 61 00",  # a header fewer than counted
    ],
)
@pytest.mark.parametrize("after", ["", "00" * 40])
def test_malformed_record_headers_are_refused(headers: str, after: str) -> None:
    body = b"\x00\x00\x00\x01\x01" + bytes.fromhex(headers)
    data, header = batch(bytes([2 * len(body)]) + body + bytes.fromhex(after), 1 + len(after) // 2)
    assert iterated(data, header) is None
    assert validated(data, header) is None


def test_a_record_header_without_value_is_not_one_with_an_empty_value() -> None:
    body = b"\x00\x00\x00\x01\x01" + bytes.fromhex("04 02 61 01 02 61 00")
    data, header = batch(bytes([2 * len(body)]) + body, 1)
    assert iterated(data, header) == [Record(0, 0, None, None, [("a", None), ("a", b"")])]


@pytest.mark.parametrize("count", [0, 1])
def test_bytes_after_the_last_record_are_refused(count: int) -> None:
    data, header = batch(b"\x0c\x00\x00\x00\x01\x01\x00" * 2, count)
    assert iterated(data, header) is None
    assert validated(data, header) is None


def test_a_batch_that_compaction_emptied_holds_no_records() -> None:
    data, header = batch(b"", 0)
    assert iterated(data, header) == []
    assert validated(data, header) == RecordTimestamps(-1, 0, -1)


def test_keyless_records_are_reported_by_index() -> None:
    data = golden.kafka_bytes("v2-zstd")
    header = read_batch_header(data)
    with pytest.raises(KeylessRecordsError) as caught:
        validate_records(data, 0, header, require_keys=True)
    assert caught.value.indexes == [0, 4, 8, 12, 16]


def test_a_batch_with_all_keys_passes_where_keys_are_required() -> None:
    section = bytes([2 * 7]) + b"\x00\x00\x00" + b"\x02k" + b"\x01" + b"\x00"
    data, header = batch(section, 1, base_timestamp=9)
    assert validate_records(data, 0, header, require_keys=True) == RecordTimestamps(9, 0, 9)


def test_under_append_time_all_records_have_the_time_of_the_header() -> None:
    data = golden.kafka_bytes("v2-none-append-time")
    header = read_batch_header(data)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert validate_records(data, 0, header) == RecordTimestamps(golden.APPEND_TIME, 100, golden.APPEND_TIME)
