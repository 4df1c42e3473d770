"""The header of a batch: its fields, its checksum, and changes in place."""

from __future__ import annotations

import struct

import pytest

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    TimestampType,
    assign_offsets,
    batch_headers,
    crc_is_valid,
    read_batch_header,
    stamp_log_append_time,
    write_crc,
)
from odradek.protocol.records.record_iterator import iter_records
from tests.protocol.records.built import batch_of


def test_without_idempotence_there_are_no_sequences() -> None:
    header = batch_of(b"v", b"w").header
    assert not header.has_producer_id
    assert header.last_sequence == -1


def test_control_and_append_time_are_bits_of_the_attributes() -> None:
    header = batch_of(b"v", is_control=True, timestamp_type=TimestampType.LOG_APPEND_TIME).header
    assert header.is_control
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.attributes == 0x28


def test_sequences_go_from_the_largest_back_to_zero() -> None:
    header = batch_of(b"a", b"b", b"c", producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 2).header
    assert header.last_sequence == 0


def test_headers_of_several_batches_and_a_partial_one() -> None:
    batches = [batch_of(b"a").data, batch_of(b"b" * 100).data, batch_of(b"c").data]
    data = b"".join(batches)
    positions = [0, len(batches[0]), len(batches[0]) + len(batches[1])]
    assert [position for position, _ in batch_headers(data)] == positions
    for end in range(len(data)):
        complete = sum(end >= position + len(batch) for position, batch in zip(positions, batches, strict=True))
        assert len(list(batch_headers(memoryview(data)[:end]))) == complete


def test_offsets_are_assigned_in_place_and_leave_the_checksum_right() -> None:
    buffer = bytearray(b"xxx") + batch_of(b"a", b"b").data
    assign_offsets(memoryview(buffer), 3, 500, 12)
    header = read_batch_header(buffer, 3)
    assert (header.base_offset, header.partition_leader_epoch) == (500, 12)
    assert crc_is_valid(buffer, 3, header)
    assert [record.offset for record in iter_records(buffer, 3, header)] == [500, 501]


@pytest.mark.parametrize("codec", Codec)
def test_append_time_is_stamped_in_place(codec: Codec) -> None:
    buffer = bytearray(b"xxx") + batch_of(b"a", b"b", timestamp=77, codec=codec).data
    stamp_log_append_time(memoryview(buffer), 3, read_batch_header(buffer, 3), 123_456)
    header = read_batch_header(buffer, 3)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.base_timestamp, header.max_timestamp) == (77, 123_456)
    assert header.codec is codec
    assert crc_is_valid(buffer, 3, header)
    assert [record.timestamp for record in iter_records(buffer, 3, header)] == [123_456, 123_456]


def test_a_flipped_bit_makes_the_checksum_wrong() -> None:
    data = batch_of(b"abc").data
    header = read_batch_header(data)
    for at in range(21, len(data)):
        data[at] ^= 1
        assert not crc_is_valid(data, 0, header)
        data[at] ^= 1
    assert crc_is_valid(data, 0, header)
    assert not crc_is_valid(data[:-1], 0, header)


@pytest.mark.parametrize(
    ("position", "layout", "value"),
    [(8, ">i", 48), (8, ">i", -1), (8, ">i", -(1 << 31)), (16, ">b", 1), (16, ">b", 0), (16, ">b", 3), (16, ">b", -2)],
)
def test_a_header_with_an_impossible_length_or_magic_is_refused(position: int, layout: str, value: int) -> None:
    data = batch_of(b"v").data
    struct.pack_into(layout, data, position, value)
    with pytest.raises(RemoteProtocolError):
        read_batch_header(data)
    with pytest.raises(RemoteProtocolError):
        list(batch_headers(data))


def test_an_incomplete_header_is_refused() -> None:
    data = batch_of(b"v").data
    for end in range(BATCH_HEADER_SIZE):
        with pytest.raises(RemoteProtocolError):
            read_batch_header(data[:end])
    assert read_batch_header(data[:BATCH_HEADER_SIZE]).size == len(data)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    data = batch_of(b"v").data
    struct.pack_into(">h", data, 21, codec)
    write_crc(data, 0, len(data))
    header = read_batch_header(data)
    with pytest.raises(RemoteProtocolError, match="codec"):
        _ = header.codec
    with pytest.raises(RemoteProtocolError, match="codec"):
        iter_records(data, 0, header)
