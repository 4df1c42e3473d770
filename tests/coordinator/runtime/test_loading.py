"""Groups come back from the log: from one that Kafka wrote, and from records of every kind."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.classic_group.stored_group import group_tombstone
from odradek.broker.coordinator.consumer_group import records as consumer_records
from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER
from odradek.broker.coordinator.migration import Migration
from odradek.broker.coordinator.offsets.committed_offsets import CommittedOffset, commit_record, offset_tombstone
from odradek.broker.coordinator.partition_state import PartitionState
from odradek.broker.coordinator.records import CoordinatorRecord, encode_record
from odradek.broker.coordinator.runtime.internal_topic import build_batch
from odradek.broker.coordinator.runtime.loading import load
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, read_batch_header, write_crc
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.stored_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from tests.storage.logs import NOW, TOPIC_ID, marker, open_log_dir

GOLDEN_DIRS = Path(__file__).parents[2] / "storage" / "golden_dirs"


@pytest.fixture
def golden(tmp_path: Path) -> Iterator[LogDir]:
    path = tmp_path / "golden"
    shutil.copytree(GOLDEN_DIRS, path)
    log_dir = open_log_dir(path)
    yield log_dir
    log_dir.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log_dir = open_log_dir(tmp_path / "logs")
    yield log_dir.create_log("__consumer_offsets", 0, TOPIC_ID, LogConfig())
    log_dir.close()


def loaded(log: Log, buffer_bytes: int = 1 << 20) -> PartitionState:
    migration = Migration(lambda _: ConsumerGroupSettings(), ClassicSettings(), MetadataImage)
    state = PartitionState({CLASSIC: migration.classic_group, CONSUMER: migration.consumer_group})
    load(log, state, buffer_bytes, NOW)
    return state


def append(log: Log, *records: CoordinatorRecord | tuple[bytes | None, bytes | None], **fields: object) -> None:
    builder = BatchBuilder(**fields)  # type: ignore[arg-type]
    for record in records:
        key, value = encode_record(record) if isinstance(record, CoordinatorRecord) else record
        builder.append(NOW, key, value)
    log.append_as_leader(memoryview(builder.build()), 0, NOW, from_client=False)
    log.advance_high_watermark(log.log_end_offset)


def commit(offset: int, group: str = "g", topic: str = "t", partition: int = 0) -> CoordinatorRecord:
    return commit_record(group, topic, partition, CommittedOffset(offset, 3, "m", NOW, -1, TOPIC_ID, -1))


@pytest.mark.parametrize("buffer_bytes", [1, 150, 1 << 20])
def test_the_offsets_that_kafka_wrote_are_loaded(golden: LogDir, buffer_bytes: int) -> None:
    state = loaded(golden.logs["__consumer_offsets", 20], buffer_bytes)

    offsets = {topic: rows[0].offset for topic, rows in state.offsets.of_group("x").items()}
    assert offsets == {
        **dict.fromkeys(("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd"), 200),
        "rolled": 20000,
        "logappend": 100,
        "compacted": 3101,
        "idempotent": 100,
        "transactional": 66,
    }
    assert state.offsets.count == 10
    assert (state.groups["x"].state, state.groups["x"].protocol_type) == ("Empty", "")


def test_the_group_that_kafka_wrote_is_loaded(golden: LogDir) -> None:
    state = loaded(golden.logs["__consumer_offsets", 49])

    group = state.groups["golden-group"]
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.protocol_type, group.generation_id) == ("Empty", "consumer", 2)
    committed = state.offsets.get("golden-group", "codec-none", 0)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.committed_at_ms) == (150, -1, 1795242218527)


def test_a_commit_is_written_as_kafka_writes_it_in_every_byte(golden: LogDir) -> None:
    log = golden.logs["__consumer_offsets", 20]
    committed = loaded(log).offsets.get("x", "codec-none", 0)
    assert committed is not None

    batch = build_batch([commit_record("x", "codec-none", 0, committed)], committed.committed_at_ms)

    with log.read(0, 132, 1) as first:
        theirs = first.read()
    assert batch[:12] == theirs[:12]  # base offset and length
    assert batch[16:] == theirs[16:]  # all but the leader epoch, which an append writes


def test_the_record_of_a_new_group_is_written_as_kafka_writes_it(golden: LogDir) -> None:
    log = golden.logs["__consumer_offsets", 49]
    with log.read(0, 108, 1) as first:
        theirs = first.read()
    [record] = iter_records(theirs, 0, read_batch_header(theirs))
    created_at_ms = 1795242218354
    group = ClassicGroup("golden-group", ClassicSettings(), created_at_ms)

    batch = build_batch([group.record_of_new_group()], record.timestamp)

    assert batch[16:] == theirs[16:]


@pytest.mark.parametrize("codec", Codec)
def test_the_last_commit_counts_and_a_tombstone_takes_it_back(log: Log, codec: Codec) -> None:
    append(log, commit(1), commit(2), commit(5, partition=1), codec=codec)
    append(log, commit(3), offset_tombstone("g", "t", 1), codec=codec)

    state = loaded(log)

    assert {index: row.offset for index, row in state.offsets.of_group("g")["t"].items()} == {0: 3}
    assert state.offsets.count == 1


def test_a_group_that_was_deleted_is_gone(log: Log) -> None:
    append(log, commit(1))
    append(log, offset_tombstone("g", "t", 0), group_tombstone("g"))

    state = loaded(log)

    assert state.groups == {}
    assert state.offsets.of_group("g") == {}


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_a_transaction_count_once_it_is_committed(log: Log, committed: bool) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(log, commit(1))
    append(log, commit(2), **transaction)
    assert loaded(log).offsets.is_pending("g", "t", 0)

    log.append_as_leader(marker(7, 0, commit=committed), 0, NOW, from_client=False)

    state = loaded(log)
    found = state.offsets.get("g", "t", 0)
    assert found is not None
    assert found.offset == (2 if committed else 1)
    assert not state.offsets.is_pending("g", "t", 0)


def test_a_commit_after_that_of_a_transaction_is_newer_whenever_the_transaction_ends(log: Log) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(log, commit(2), **transaction)
    append(log, commit(1))
    log.append_as_leader(marker(7, 0, commit=True), 0, NOW, from_client=False)

    found = loaded(log).offsets.get("g", "t", 0)

    assert found is not None
    assert found.offset == 1


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        (b"\x00", b"", "the key has no record type"),
        (b"\x00\x01\x00\x05g", b"", "malformed"),
        (encode_record(commit(1))[0], b"\x00\x63", "version 99"),
        (encode_record(commit(1))[0], b"\x00", "no version"),
        (encode_record(commit(1))[0], b"\x00\x03\x00", "malformed"),
        (b"\x03\xe7", b"", "unknown type"),
    ],
)
def test_a_bad_record_is_passed_over_and_named(
    log: Log, key: bytes, value: bytes, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    append(log, commit(7), (key, value), commit(8, partition=1))

    with caplog.at_level(logging.WARNING):
        state = loaded(log)

    assert {index: row.offset for index, row in state.offsets.of_group("g")["t"].items()} == {0: 7, 1: 8}
    [line] = [record.getMessage() for record in caplog.records]
    assert complaint in line
    assert "offset=1" in line


def test_loading_starts_where_the_log_does(log: Log) -> None:
    append(log, commit(1), commit(2, partition=1), commit(3, partition=2))
    log.update_log_start_offset(1)

    assert loaded(log).offsets.of_group("g")["t"].keys() == {1, 2}


def test_a_record_that_contradicts_itself_is_passed_over(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    member = ConsumerMember("m", assigned={TOPIC_ID: {0: 1, 1: 1}})
    odd = consumer_records.current_assignment("odd", member)
    assert isinstance(odd.value, ConsumerGroupCurrentMemberAssignmentValue)
    odd.value.assigned_partitions[0].assignment_epochs = [1]  # of two partitions
    append(log, consumer_records.subscription("odd", member), odd, commit(7))

    with caplog.at_level(logging.ERROR):
        state = loaded(log)

    assert [record.getMessage() for record in caplog.records if "passed over" in record.getMessage()]
    assert state.groups["odd"].members_count == 1
    assert state.offsets.of_group("g")["t"][0].offset == 7


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_cannot_be_decoded_is_passed_over(
    log: Log, caplog: pytest.LogCaptureFixture, codec: Codec
) -> None:
    append(log, commit(7))
    builder = BatchBuilder(codec=codec)
    builder.append(NOW, b"k", b"v" * 100)
    garbled = builder.build()
    garbled[BATCH_HEADER_SIZE + 1 : BATCH_HEADER_SIZE + 11] = b"\xff" * 10
    write_crc(garbled, 0, len(garbled))
    log.append_as_leader(garbled, 0, NOW, from_client=False)
    append(log, commit(8, partition=1))

    with caplog.at_level(logging.ERROR):
        state = loaded(log)

    assert {index: row.offset for index, row in state.offsets.of_group("g")["t"].items()} == {0: 7, 1: 8}
    [line] = [record.getMessage() for record in caplog.records]
    assert "batch passed over" in line
