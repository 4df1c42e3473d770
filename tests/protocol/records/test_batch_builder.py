"""Batches as `BatchBuilder` builds them and the iterator reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    TimestampType,
    crc_is_valid,
    read_batch_header,
)
from odradek.protocol.records.record_iterator import Record, iter_records
from tests.protocol.records.built import Batch

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
CONTENT = st.none() | st.binary(max_size=20) | st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 8191, b"x" * 8192])
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)


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
        builder.append(*row)
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


def test_the_header_has_the_arguments_of_the_builder() -> None:
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


def test_the_producer_may_be_set_later_and_the_batch_built_again() -> None:
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


def test_offsets_may_have_gaps() -> None:
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


def test_a_builder_refuses_values_outside_the_format_and_is_unchanged() -> None:
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
