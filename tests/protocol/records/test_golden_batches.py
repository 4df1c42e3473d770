"""Batches that Apache Kafka and its clients wrote: decoded exactly, and encoded to the same bytes."""

from __future__ import annotations

import pytest

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    BatchHeader,
    TimestampType,
    batch_headers,
    crc_is_valid,
    read_batch_header,
    stamp_log_append_time,
)
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.records.record_validation import validate_records
from tests.protocol.records import golden


def rebuilt(data: bytes, position: int, header: BatchHeader) -> bytearray:
    builder = BatchBuilder(
        header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )
    for record in iter_records(data, position, header):
        offset, timestamp, key, value, headers = record
        builder.append(timestamp, key, value, headers, offset - header.base_offset)
    return builder.build(header.base_offset, header.partition_leader_epoch)


@pytest.mark.parametrize("name", golden.log_names())
def test_a_log_holds_what_its_consumer_read(name: str) -> None:
    data = golden.log_bytes(name)
    records: list[Record] = []
    end = 0
    for position, header in batch_headers(data):
        assert position == end
        assert crc_is_valid(data, position, header)
        if not header.is_control:
            records += iter_records(memoryview(data), position, header)
        end = position + header.size
    assert end == len(data)
    assert records == golden.log_records(name)


@pytest.mark.parametrize("name", ["codec-none", "codec-gzip", "codec-lz4", "idempotent", "rolled", "transactional"])
def test_batches_of_librdkafka_are_built_again_to_the_same_bytes(name: str) -> None:
    data = golden.log_bytes(name)
    for position, header in batch_headers(data):
        assert rebuilt(data, position, header) == data[position : position + header.size]


@pytest.mark.parametrize("name", [name for name in golden.log_names() if name != "compacted"])
def test_batches_that_were_never_compacted_are_valid(name: str) -> None:
    data = golden.log_bytes(name)
    for position, header in batch_headers(data):
        assert validate_records(data, position, header).max_timestamp == header.max_timestamp


def test_an_append_time_is_what_the_broker_stamped() -> None:
    data = golden.log_bytes("logappend")
    header = read_batch_header(data)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in iter_records(data, 0, header)} == {header.max_timestamp}


def test_stamping_an_append_time_gives_the_bytes_that_the_broker_wrote() -> None:
    data = golden.log_bytes("logappend")
    header = read_batch_header(data)
    as_sent = bytearray(data[: header.size])
    as_sent[21:23] = bytes(
        2
    )  # as the producer sent it, except the maximum timestamp and the checksum, which the stamp replaces
    as_sent[17:21], as_sent[35:43] = bytes(4), bytes(8)
    stamp_log_append_time(as_sent, 0, read_batch_header(as_sent), header.max_timestamp)
    assert as_sent == data[: header.size]


@pytest.mark.parametrize("name", golden.kafka_files(2))
def test_batches_of_the_java_classes(name: str) -> None:
    data = golden.kafka_bytes(name)
    header = read_batch_header(data)
    assert list(iter_records(data, 0, header)) == golden.kafka_records(name)
    assert crc_is_valid(data, 0, header)
    assert header.size == len(data)
    assert header.codec is Codec[name.split("-")[1].upper()]
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (4000, 7, 30, 49)
    is_append_time = name.endswith("append-time")
    assert header.timestamp_type == is_append_time
    expected = golden.APPEND_TIME if is_append_time else golden.BASE_TIMESTAMP + 19_000
    found = validate_records(data, 0, header)
    assert found.max_timestamp == header.max_timestamp == expected
    assert found.max_timestamp_offset == (100 if is_append_time else 119)
    assert found.min_timestamp == (golden.APPEND_TIME if is_append_time else golden.BASE_TIMESTAMP + 5_000 - 3_600_000)


def test_the_delete_horizon_is_the_base_of_the_timestamps() -> None:
    header = read_batch_header(golden.kafka_bytes("v2-none-delete-horizon"))
    assert header.has_delete_horizon
    assert header.delete_horizon_ms == header.base_timestamp == golden.DELETE_HORIZON
