"""Loading a partition: the records that are replayed, and those that are skipped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odradek.broker.coordinator.runtime.loading import load
from odradek.broker.coordinator.runtime.records import CoordinatorRecord, encode_record
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, write_crc
from tests.coordinator.runtime.counters import TOPIC, Counters, counter_record
from tests.storage.logs import NOW, TOPIC_ID, marker, open_log_dir

TRANSACTION: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log_dir = open_log_dir(tmp_path / "logs")
    yield log_dir.create_log(TOPIC.name, 0, TOPIC_ID, LogConfig())
    log_dir.close()


def loaded(log: Log, buffer_bytes: int = 1 << 20, *, last_record_counts: bool = False) -> Counters:
    counters = Counters()
    topic = msgspec.structs.replace(TOPIC, load_buffer_bytes=buffer_bytes, last_record_counts=last_record_counts)
    load(topic, log, counters, NOW)
    return counters


def append(log: Log, *records: CoordinatorRecord | tuple[bytes | None, bytes | None], **fields: Any) -> None:
    builder = BatchBuilder(**fields)
    for record in records:
        key, value = encode_record(record) if isinstance(record, CoordinatorRecord) else record
        builder.append(NOW, key, value)
    log.append_as_leader(memoryview(builder.build()), 0, NOW, Origin.COORDINATOR)


@pytest.mark.parametrize("buffer_bytes", [1, 150, 1 << 20])
@pytest.mark.parametrize("codec", Codec)
def test_every_record_is_replayed_in_the_order_of_the_log(log: Log, codec: Codec, buffer_bytes: int) -> None:
    append(log, counter_record("a", 1), counter_record("b", 2), codec=codec)
    append(log, counter_record("a", 3), counter_record("b", None), codec=codec)

    counters = loaded(log, buffer_bytes)

    assert counters.replayed == [("a", 1), ("b", 2), ("a", 3), ("b", None)]


@pytest.mark.parametrize("buffer_bytes", [1, 150, 1 << 20])
@pytest.mark.parametrize("codec", Codec)
def test_only_the_last_record_of_a_key_is_replayed_where_only_that_counts(
    log: Log, codec: Codec, buffer_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    append(log, counter_record("a", 1), counter_record("b", 2), counter_record("c", 3), codec=codec)
    append(log, counter_record("a", 4), counter_record("b", None), (None, b"v"), codec=codec)
    counters = Counters()

    topic = msgspec.structs.replace(TOPIC, load_buffer_bytes=buffer_bytes, last_record_counts=True)
    read = load(topic, log, counters, NOW)

    assert counters.replayed == [("c", 3), ("a", 4), ("b", None)]
    assert (read.records, read.end_offset) == (6, 6)
    assert "offset=5" in caplog.text


@pytest.mark.parametrize("buffer_bytes", [1, 150, 1 << 20])
def test_batches_of_one_record_are_read_like_others(log: Log, buffer_bytes: int) -> None:
    long_name = "n" * 10_000
    append(log, counter_record("a", 1))
    append(log, counter_record("b", 2), codec=Codec.GZIP)
    append(log, counter_record(long_name, 3))
    append(log, counter_record("a", 4), **TRANSACTION)
    log.append_as_leader(marker(7, 0, commit=True), 0, NOW, Origin.COORDINATOR)
    append(log, counter_record("b", None))
    builder = BatchBuilder()
    builder.append(NOW, *encode_record(counter_record("c", 5)), [("header", b"of one")])
    log.append_as_leader(memoryview(builder.build()), 0, NOW, Origin.COORDINATOR)
    builder = BatchBuilder()
    builder.append(NOW, *encode_record(counter_record("c", 6)), offset_delta=2)
    log.append_as_leader(memoryview(builder.build()), 0, NOW, Origin.COORDINATOR)
    append(log, counter_record(long_name, 7))

    counters = loaded(log, buffer_bytes, last_record_counts=True)

    assert counters.replayed == [("a", 4), ("b", None), ("c", 6), (long_name, 7)]


@pytest.mark.parametrize("last_record_counts", [False, True])
def test_a_batch_of_one_record_below_the_start_of_the_log_is_not_loaded(log: Log, last_record_counts: bool) -> None:
    for name in "abc":
        append(log, counter_record(name, 1))
    log.advance_high_watermark(log.log_end_offset)
    log.update_log_start_offset(1)

    assert loaded(log, last_record_counts=last_record_counts).counts == {"b": 1, "c": 1}


def test_loading_starts_at_the_start_of_the_log_even_inside_a_batch(log: Log) -> None:
    append(log, counter_record("a", 1), counter_record("b", 2), counter_record("c", 3))
    log.advance_high_watermark(log.log_end_offset)
    log.update_log_start_offset(1)

    assert loaded(log).counts == {"b": 2, "c": 3}


@pytest.mark.parametrize("committed", [True, False])
def test_records_of_a_transaction_count_if_its_marker_commits_it(log: Log, committed: bool) -> None:
    append(log, counter_record("a", 1))
    append(log, counter_record("a", 2), **TRANSACTION)
    assert loaded(log).counts == {"a": 1}

    log.append_as_leader(marker(7, 0, commit=committed), 0, NOW, Origin.COORDINATOR)

    assert loaded(log).counts == {"a": 2 if committed else 1}


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        (None, b"", "the key has no record type"),
        (b"\x00", b"", "the key has no record type"),
        (b"\x00\x00\x00\x05g", b"", "malformed"),
        (encode_record(counter_record("a", 1))[0], b"\x00\x63", "version 99"),
        (encode_record(counter_record("a", 1))[0], b"\x00", "no version"),
        (encode_record(counter_record("a", 1))[0], b"\x00\x00\x00", "malformed"),
        (b"\x03\xe7", b"", "unknown type"),
        (*encode_record(counter_record("a", -1)), "never negative"),
    ],
)
def test_a_bad_record_is_skipped_and_its_offset_logged(
    log: Log, key: bytes | None, value: bytes | None, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    append(log, counter_record("a", 7), (key, value), counter_record("b", 8))

    with caplog.at_level(logging.WARNING):
        counters = loaded(log)

    assert counters.counts == {"a": 7, "b": 8}
    [line] = [record.getMessage() for record in caplog.records]
    assert complaint in line
    assert "offset=1" in line


@pytest.mark.parametrize("last_record_counts", [False, True])
@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_cannot_be_decoded_is_skipped(
    log: Log, caplog: pytest.LogCaptureFixture, codec: Codec, last_record_counts: bool
) -> None:
    append(log, counter_record("a", 7))
    builder = BatchBuilder(codec=codec)
    builder.append(NOW, b"k", b"v" * 100)
    garbled = builder.build()
    garbled[BATCH_HEADER_SIZE + 1 : BATCH_HEADER_SIZE + 11] = b"\xff" * 10
    write_crc(garbled, 0, len(garbled))
    log.append_as_leader(garbled, 0, NOW, Origin.COORDINATOR)
    append(log, counter_record("b", 8))

    with caplog.at_level(logging.ERROR):
        counters = loaded(log, last_record_counts=last_record_counts)

    assert counters.counts == {"a": 7, "b": 8}
    [line] = [record.getMessage() for record in caplog.records]
    assert "batch skipped" in line
