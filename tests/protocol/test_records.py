"""Batches as the builder makes them and the header view, the patches and the iterator see them."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.compression.recompression import recompress
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    TimestampType,
    assign_offsets,
    batch_headers,
    crc_is_valid,
    read_batch_header,
    stamp_log_append_time,
    write_crc,
)
from odradek.protocol.records.record_headers import Header
from odradek.protocol.records.record_iterator import Record, iter_records

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
CONTENT = st.none() | st.binary(max_size=20) | st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 8191, b"x" * 8192])
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)


@dataclasses.dataclass
class Batch:
    data: bytearray

    @property
    def header(self) -> BatchHeader:
        return read_batch_header(self.data)

    def records(self) -> list[Record]:
        return list(iter_records(self.data, 0, self.header))


def batch_of(*values: bytes, timestamp: int = 1000, **options: object) -> Batch:
    builder = BatchBuilder(**options)  # type: ignore[arg-type]
    for i, value in enumerate(values):
        builder.append(timestamp + i, None, value)
    return Batch(builder.build())


@given(
    st.lists(st.tuples(INT64, CONTENT, CONTENT, HEADERS), min_size=1, max_size=5),
    st.sampled_from(Codec),
    st.integers(0, (1 << 63) - 9),
)
def test_what_is_appended_is_iterated(
    rows: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], codec: Codec, base_offset: int
) -> None:
    builder = BatchBuilder(codec)
    expected = []
    for row in rows:
        try:
            builder.append(*row)
        except LocalProtocolError:
            assert abs(row[0] - rows[0][0]) >= 1 << 63  # two timestamps too far apart for one batch
        else:
            expected.append(Record(base_offset + len(expected), *row))
    data = builder.build(base_offset, 7)
    header = read_batch_header(data)
    assert list(iter_records(data, 0, header)) == expected
    assert crc_is_valid(data, 0, header)
    assert header.size == len(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (
        base_offset,
        base_offset + len(expected) - 1,
        base_offset + len(expected),
    )
    assert header.base_timestamp == expected[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in expected)
    assert header.records_count == len(expected)
    assert header.partition_leader_epoch == 7


def test_a_batch_of_many_records_needs_every_width_of_varint() -> None:
    count = 10_000
    builder = BatchBuilder()
    for i in range(count):
        builder.append(i * i, str(i).encode() if i % 3 else None, bytes(i % 200))
    data = builder.build(50)
    records = list(iter_records(data, 0, read_batch_header(data)))
    assert [record.offset for record in records] == list(range(50, 50 + count))
    assert [record.timestamp for record in records] == [i * i for i in range(count)]
    assert [record.key for record in records] == [str(i).encode() if i % 3 else None for i in range(count)]
    assert [record.value for record in records] == [bytes(i % 200) for i in range(count)]


@pytest.mark.parametrize("length", [0, 1, 63, 64, 127, 128, 9000])
def test_headers_come_back_again_and_again(length: int) -> None:
    """Short keys are remembered; what is not text is refused each time."""
    headers: list[Header] = [("ж" * (length // 2) + "x" * (length % 2), b"v" * length), ("\udcff" * (length % 2), None)]
    builder = BatchBuilder()
    for _ in range(3):
        builder.append(0, None, None, headers)
        with pytest.raises(LocalProtocolError, match="not text"):
            builder.append(0, None, None, [("\ud800", b"")])
    data = builder.build()
    assert [record.headers for record in iter_records(data, 0, read_batch_header(data))] == [headers] * 3


def test_the_header_says_what_the_builder_was_told() -> None:
    builder = BatchBuilder(Codec.ZSTD, producer_id=9, producer_epoch=3, base_sequence=40, is_transactional=True)
    builder.append(5, b"k", b"v")
    builder.append(4, b"k", b"v")
    header = read_batch_header(builder.build())
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (9, 3, 40, 41)
    assert header.codec is Codec.ZSTD
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert not header.has_delete_horizon
    assert header.delete_horizon_ms is None
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.attributes == 0x14


def test_without_idempotence_there_are_no_sequences() -> None:
    header = batch_of(b"v", b"w").header
    assert not header.has_producer_id
    assert header.last_sequence == -1


def test_control_and_append_time_are_bits() -> None:
    header = batch_of(b"v", is_control=True, timestamp_type=TimestampType.LOG_APPEND_TIME).header
    assert header.is_control
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.attributes == 0x28


def test_sequences_go_from_the_largest_back_to_zero() -> None:
    header = batch_of(b"a", b"b", b"c", producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 2).header
    assert header.last_sequence == 0


def test_a_producer_may_be_given_late_and_the_batch_built_again() -> None:
    builder = BatchBuilder(Codec.LZ4)
    builder.append(1, b"k", b"v")
    first = builder.build()
    builder.producer_id, builder.producer_epoch, builder.base_sequence = 8, 2, 100
    second = Batch(builder.build())
    assert (second.header.producer_id, second.header.producer_epoch, second.header.base_sequence) == (8, 2, 100)
    assert second.records() == Batch(first).records()
    builder.append(2, b"k", b"w")
    assert [record.value for record in Batch(builder.build()).records()] == [b"v", b"w"]


def test_the_size_estimate_is_exact_without_compression() -> None:
    builder = BatchBuilder()
    for i in range(300):
        builder.append(i, b"key", b"value" * i, [("h", b"x")])
        assert builder.records_count == i + 1
    assert builder.size_estimate == len(builder.build())


def test_offsets_may_be_left_out() -> None:
    builder = BatchBuilder()
    builder.append(1, None, b"a")
    builder.append(1, None, b"b", offset_delta=70)
    builder.append(1, None, b"c")
    builder.append(1, None, b"d", offset_delta=90_000)
    batch = Batch(builder.build(1000))
    assert [record.offset for record in batch.records()] == [1000, 1070, 1071, 91_000]
    assert (batch.header.last_offset, batch.header.records_count) == (91_000, 4)
    with pytest.raises(LocalProtocolError):
        builder.append(1, None, b"e", offset_delta=90_000)


def test_a_builder_refuses_what_the_format_cannot_carry_and_is_as_before() -> None:
    builder = BatchBuilder()
    with pytest.raises(LocalProtocolError):
        builder.append(1 << 63, None, b"v")
    builder.append(0, None, b"v")
    with pytest.raises(LocalProtocolError):
        builder.append(-(1 << 63) - 1, None, b"v")
    with pytest.raises(LocalProtocolError):
        builder.append(0, None, b"v", [("\ud800", b"")])
    builder.append(1, None, b"w")
    assert [record.value for record in Batch(builder.build()).records()] == [b"v", b"w"]
    with pytest.raises(LocalProtocolError):
        builder.build(1 << 63)
    with pytest.raises(LocalProtocolError, match="no records"):
        BatchBuilder().build()


def test_a_header_key_that_is_not_text_survives_being_read_and_written() -> None:
    builder = BatchBuilder()
    builder.append(0, None, None, [("\udcffé", b"v")])
    batch = Batch(builder.build())
    assert b"\xff\xc3\xa9" in batch.data
    again = BatchBuilder()
    again.append(0, None, None, batch.records()[0].headers)
    assert again.build() == batch.data


@pytest.mark.parametrize("base", [(1 << 63) - 1, -(1 << 63)])
def test_timestamps_at_the_ends_of_64_bits(base: int) -> None:
    step = -1 if base > 0 else 1
    builder = BatchBuilder()
    for delta in (0, 1, 63, 64, 8191, 8192):
        builder.append(base + step * delta, None, b"")
    batch = Batch(builder.build())
    assert [record.timestamp - base for record in batch.records()] == [step * d for d in (0, 1, 63, 64, 8191, 8192)]
    for beyond in (1, 70, 9000):  # encoded in one, two and three bytes
        batch = batch_of(b"", timestamp=0)
        builder = BatchBuilder()
        builder.append(0, None, b"")
        builder.append(-step * beyond, None, b"")
        data = builder.build()
        struct.pack_into(">q", data, 27, base)
        with pytest.raises(RemoteProtocolError, match="64 bits"):
            Batch(data).records()


@pytest.mark.parametrize("delta", [1, 70, 9000])
def test_offsets_beyond_64_bits_are_refused(delta: int) -> None:
    builder = BatchBuilder()
    builder.append(0, None, b"", offset_delta=delta)
    assert Batch(builder.build((1 << 63) - 1 - delta)).records()[0].offset == (1 << 63) - 1
    with pytest.raises(RemoteProtocolError, match="64 bits"):
        Batch(builder.build((1 << 63) - delta)).records()


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


def test_a_checksum_does_not_survive_a_flipped_bit() -> None:
    data = batch_of(b"abc").data
    header = read_batch_header(data)
    for at in range(21, len(data)):
        data[at] ^= 1
        assert not crc_is_valid(data, 0, header)
        data[at] ^= 1
    assert crc_is_valid(data, 0, header)
    assert not crc_is_valid(data[:-1], 0, header)


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_recompression_changes_the_codec_and_nothing_else(source: Codec, target: Codec) -> None:
    before = batch_of(b"a" * 500, b"b", codec=source, producer_id=4, producer_epoch=0, base_sequence=0)
    buffer = b"xxx" + before.data
    after = Batch(recompress(buffer, 3, before.header, target))
    assert after.records() == before.records()
    assert after.header.codec is target
    assert crc_is_valid(after.data, 0, after.header)
    assert after.header.size == len(after.data)
    same = {"crc": 0, "batch_length": 0, "attributes": 0}
    assert after.header.replace(**same) == before.header.replace(**same)


@pytest.mark.parametrize(
    ("position", "layout", "value"),
    [(8, ">i", 48), (8, ">i", -1), (8, ">i", -(1 << 31)), (16, ">b", 1), (16, ">b", 0), (16, ">b", 3), (16, ">b", -2)],
)
def test_a_header_that_cannot_be_is_refused(position: int, layout: str, value: int) -> None:
    data = batch_of(b"v").data
    struct.pack_into(layout, data, position, value)
    with pytest.raises(RemoteProtocolError):
        read_batch_header(data)
    with pytest.raises(RemoteProtocolError):
        list(batch_headers(data))


def test_a_header_of_fewer_bytes_than_it_takes_is_refused() -> None:
    data = batch_of(b"v").data
    for end in range(BATCH_HEADER_SIZE):
        with pytest.raises(RemoteProtocolError):
            read_batch_header(data[:end])
    assert read_batch_header(data[:BATCH_HEADER_SIZE]).size == len(data)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_nobody_knows_is_refused(codec: int) -> None:
    data = batch_of(b"v").data
    struct.pack_into(">h", data, 21, codec)
    write_crc(data, 0, len(data))
    header = read_batch_header(data)
    with pytest.raises(RemoteProtocolError, match="codec"):
        _ = header.codec
    with pytest.raises(RemoteProtocolError, match="codec"):
        iter_records(data, 0, header)


def test_records_that_expand_beyond_the_bound_are_refused() -> None:
    batch = batch_of(bytes(100_000), codec=Codec.GZIP)
    assert len(list(iter_records(batch.data, 0, batch.header, max_decompressed=100_020))) == 1
    with pytest.raises(RemoteProtocolError):
        iter_records(batch.data, 0, batch.header, max_decompressed=100_000)
