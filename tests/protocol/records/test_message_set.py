from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression.codecs import Codec, compress
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import TimestampType, crc_is_valid, read_batch_header
from odradek.protocol.records.message_set import (
    convert_to_v2,
    iter_messages,
    magic_of,
    message_headers,
    read_message_header,
)
from odradek.protocol.records.record_iterator import Record, iter_records
from tests.protocol.records import golden

NAMES = golden.kafka_files(0) + golden.kafka_files(1)


def message(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    codec: int = 0,
    timestamp: int = 5,
    append_time: bool = False,
    crc: int | None = None,
) -> bytes:
    body = struct.pack(">bb", magic, codec | (8 if append_time else 0))
    body += struct.pack(">q", timestamp) if magic else b""
    for content in (key, value):
        body += struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body) if crc is None else crc) + body


def wrapper(offset: int, *inner: bytes, magic: int = 1, append_time: bool = False, timestamp: int = 9) -> bytes:
    value = compress(Codec.GZIP, b"".join(inner))
    return message(offset, None, value, magic=magic, codec=1, timestamp=timestamp, append_time=append_time)


@pytest.mark.parametrize("name", NAMES)
def test_sets_of_the_java_classes(name: str) -> None:
    assert list(iter_messages(golden.kafka_bytes(name))) == golden.kafka_records(name)


@pytest.mark.parametrize("name", NAMES)
def test_sets_of_the_java_classes_become_batches(name: str) -> None:
    data = convert_to_v2(memoryview(golden.kafka_bytes(name)))
    header = read_batch_header(data)
    assert crc_is_valid(data, 0, header)
    assert (header.base_offset, header.last_offset, header.size) == (0, 19, len(data))
    assert header.codec is Codec[name.split("-")[1].upper()]
    expected = [record._replace(offset=i) for i, record in enumerate(golden.kafka_records(name))]
    assert list(iter_records(data, 0, header)) == expected


def test_conversion_uses_the_given_codec() -> None:
    header = read_batch_header(convert_to_v2(golden.kafka_bytes("v1-gzip"), Codec.ZSTD))
    assert header.codec is Codec.ZSTD


@pytest.mark.parametrize("name", ["v0-none", "v0-gzip", "v1-none", "v1-snappy", "v1-lz4-append-time", "v2-none"])
def test_the_magic_is_found_without_knowing_the_format(name: str) -> None:
    data = b"xxx" + golden.kafka_bytes(name)
    assert magic_of(data, 3) == int(name[1])
    with pytest.raises(RemoteProtocolError):
        magic_of(data[:19], 3)


def test_headers_of_wrappers_are_returned_without_their_messages() -> None:
    data = golden.kafka_bytes("v1-lz4-append-time")
    [(position, header)] = message_headers(data)
    assert position == 0
    assert header.size == len(data)
    assert (header.offset, header.magic, header.codec) == (119, 1, Codec.LZ4)
    assert (header.timestamp, header.timestamp_type) == (golden.APPEND_TIME, TimestampType.LOG_APPEND_TIME)
    [first, *rest] = message_headers(golden.kafka_bytes("v0-none"))
    assert (first[1].offset, first[1].timestamp, first[1].codec) == (100, -1, Codec.NONE)
    assert first[1].timestamp_type is TimestampType.CREATE_TIME
    assert len(rest) == 19


def test_a_message_cut_off_at_the_end_ends_the_iteration() -> None:
    whole = message(3, b"k", b"v")
    data = whole + message(4, None, b"w")
    for end in range(len(whole), len(data)):
        assert list(iter_messages(data[:end])) == [Record(3, 5, b"k", b"v", [])]
        if end > len(whole):
            with pytest.raises(RemoteProtocolError):
                convert_to_v2(data[:end])
    assert len(list(iter_messages(data))) == 2


def test_an_empty_set_cannot_be_converted() -> None:
    assert list(iter_messages(b"")) == []
    with pytest.raises(RemoteProtocolError):
        convert_to_v2(b"")


def test_relative_offsets_count_from_the_first_inside() -> None:
    inner = [message(0, None, b"a"), message(2, None, b"b"), message(3, None, b"c")]  # compaction removed one
    assert [record.offset for record in iter_messages(wrapper(53, *inner))] == [50, 52, 53]


def test_a_wrapper_at_offset_zero_adds_nothing() -> None:
    inner = [message(0, None, b"a"), message(1, None, b"b")]  # as a producer sends it, before offsets are assigned
    assert [record.offset for record in iter_messages(wrapper(0, *inner))] == [0, 1]


def test_absolute_offsets_of_magic_0() -> None:
    inner = [message(50, None, b"a", magic=0), message(53, None, b"b", magic=0)]
    assert [record.offset for record in iter_messages(wrapper(53, *inner, magic=0))] == [50, 53]


def test_inner_timestamps_are_valid_unless_the_wrapper_has_append_time() -> None:
    inner = [message(0, None, b"a", timestamp=1), message(1, None, b"b", timestamp=2)]
    assert [record.timestamp for record in iter_messages(wrapper(1, *inner))] == [1, 2]
    assert [record.timestamp for record in iter_messages(wrapper(1, *inner, append_time=True))] == [9, 9]


def test_a_set_may_mix_wrappers_and_plain_messages() -> None:
    data = message(0, b"k", b"v") + wrapper(2, message(0, None, b"a"), message(1, None, b"b")) + message(3, None, None)
    assert [(r.offset, r.key, r.value) for r in iter_messages(data)] == [
        (0, b"k", b"v"),
        (1, None, b"a"),
        (2, None, b"b"),
        (3, None, None),
    ]
    assert read_batch_header(convert_to_v2(data)).codec is Codec.GZIP


@pytest.mark.parametrize(
    "data",
    [
        message(0, b"k", b"v", crc=7),
        message(0, b"k", b"v", magic=2),
        message(0, b"k", b"v", magic=-1),
        message(0, None, None, codec=1),
        message(0, None, b"", codec=1),
        message(0, None, b"not gzip", codec=1),
        message(0, None, compress(Codec.ZSTD, message(0, None, b"v")), codec=4),
        message(0, b"k", b"v", codec=7),
        wrapper(0),
        wrapper(0, message(0, None, b"v")[:-1]),
        wrapper(0, message(0, None, b"v"), b"more"),
        wrapper(0, message(0, None, b"v", magic=0)),
        wrapper(0, message(0, None, b"v", crc=7)),
        wrapper(0, wrapper(0, message(0, None, b"v"))),
        wrapper(4, message(5, None, b"v")),
        wrapper(-1, message(0, None, b"v")),
        wrapper((1 << 63) - 1, message(2, None, b"v"), message(0, None, b"v"), message(1, None, b"v")),
    ],
)
def test_malformed_sets_are_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        list(iter_messages(data))
    with pytest.raises(RemoteProtocolError):
        convert_to_v2(data)


@pytest.mark.parametrize("size", [-(1 << 31), -12, -1, 0, 13, 21])
def test_an_impossible_size_is_refused(size: int) -> None:
    data = bytearray(message(0, b"k", b"v"))
    struct.pack_into(">i", data, 8, size)
    with pytest.raises(RemoteProtocolError):
        list(iter_messages(data))


def test_an_incomplete_header_is_refused() -> None:
    data = message(0, b"k", b"v")
    for end in range(26):
        with pytest.raises(RemoteProtocolError):
            read_message_header(data[:end])


def test_inner_lengths_are_checked() -> None:
    for position, length in ((26, 1 << 30), (26, 3), (31, 1 << 30), (31, 0), (31, 2)):
        data = bytearray(message(0, b"k", b"v"))
        struct.pack_into(">i", data, position, length)
        struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
        with pytest.raises(RemoteProtocolError):
            list(iter_messages(data))


def test_timestamps_that_are_2_to_the_64_apart_stay_in_one_batch() -> None:
    data = message(0, None, b"", timestamp=-(1 << 63)) + message(1, None, b"", timestamp=(1 << 63) - 1)
    batch = convert_to_v2(data)
    assert [record.timestamp for record in iter_records(batch, 0, read_batch_header(batch))] == [
        -(1 << 63),
        (1 << 63) - 1,
    ]


def test_messages_that_expand_beyond_the_limit_are_refused() -> None:
    data = wrapper(0, message(0, None, bytes(10_000)))
    assert len(list(iter_messages(data, 10_034))) == 1
    with pytest.raises(RemoteProtocolError):
        list(iter_messages(data, 10_033))


@given(st.sampled_from(NAMES), st.integers(0), st.integers(1, 255), st.booleans())
def test_a_flipped_bit_is_refused_or_harmless(name: str, at: int, mask: int, fix_checksum: bool) -> None:
    data = bytearray(golden.kafka_bytes(name))
    data[at % len(data)] ^= mask
    if fix_checksum and "none" not in name:
        struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    try:
        list(iter_messages(data, 1 << 20))
        convert_to_v2(data, max_decompressed=1 << 20)
    except RemoteProtocolError:
        pass


@given(st.binary(max_size=120))
def test_random_bytes_are_refused_or_empty(data: bytes) -> None:
    try:
        assert list(iter_messages(data)) == []
    except RemoteProtocolError:
        pass
