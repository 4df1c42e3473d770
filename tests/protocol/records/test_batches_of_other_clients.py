"""Batches built here and read by the parsers of two other clients; message sets of one of them read here."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import TimestampType, read_batch_header
from odradek.protocol.records.message_set import iter_messages
from odradek.protocol.records.record_headers import Header
from odradek.protocol.records.record_iterator import Record, iter_records

ROWS: list[tuple[int, bytes | None, bytes | None, list[Header]]] = [
    (1_700_000_000_000, b"key", b"value", []),
    (1_700_000_000_050, None, b"value" * 3000, [("header", b"x"), ("none", None), ("header", b"")]),
    (1_699_999_000_000, b"", None, [("ключ", b"x" * 200)]),
    (1_700_009_000_000, b"k" * 100, b"", []),
]


def built(codec: Codec, **options: Any) -> bytes:
    builder = BatchBuilder(codec, producer_id=70_000, producer_epoch=3, base_sequence=5, **options)
    for row in ROWS:
        builder.append(*row)
    return bytes(builder.build(base_offset=1 << 40, leader_epoch=6))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("parser", [AiokafkaRecords, KafkaPythonRecords], ids=["aiokafka", "kafka-python"])
def test_other_clients_read_batches(parser: Any, codec: Codec) -> None:
    records = parser(built(codec, is_transactional=True) + built(Codec.NONE))
    batch = records.next_batch()
    assert batch.validate_crc()
    assert batch.is_transactional
    assert not batch.is_control_batch
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1 << 40, 70_000, 3, 5)
    assert [(r.offset - (1 << 40), r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == [
        (i, *row) for i, row in enumerate(ROWS)
    ]
    assert records.has_next()


@pytest.mark.parametrize("parser", [AiokafkaRecords, KafkaPythonRecords], ids=["aiokafka", "kafka-python"])
def test_other_clients_read_the_append_time(parser: Any) -> None:
    batch = parser(built(Codec.NONE, timestamp_type=TimestampType.LOG_APPEND_TIME)).next_batch()
    assert {(r.timestamp_type, r.timestamp) for r in batch} == {(1, 1_700_009_000_000)}


@pytest.mark.parametrize("key_length", [None, 8, 63])
@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(
    "headers", [[], [("trace", b"%016d"), ("none", None), ("ключ", b"")]], ids=["plain", "headers"]
)
def test_records_of_various_lengths_of_aiokafka(codec: Codec, key_length: int | None, headers: list[Header]) -> None:
    """Offsets and timestamps whose deltas take two bytes from some record on."""
    builder = AiokafkaBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    expected = []
    for offset in range(700):
        key = None if key_length is None else bytes([offset % 256]) * key_length
        value = b"%d" % offset * (offset * 7 % 300 if offset % 90 else 3)
        own = [(name, header and header.replace(b"%016d", b"%016d" % offset)) for name, header in headers]
        builder.append(offset, 1_700_000_000_000 + offset // 3, key, value, own)
        expected.append(Record(offset, 1_700_000_000_000 + offset // 3, key, value, own))
    data = bytes(builder.build())
    assert list(iter_records(data, 0, read_batch_header(data))) == expected


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
def test_message_sets_of_kafka_python(magic: int, codec: Codec) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    expected = []
    for offset, (timestamp, key, value, _) in enumerate(ROWS):
        builder.append(offset, timestamp, key, value)
        expected.append(Record(offset, timestamp if magic else -1, key, value, []))
    assert list(iter_messages(builder.build())) == expected
