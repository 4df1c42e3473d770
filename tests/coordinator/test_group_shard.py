"""The groups of one partition: loaded from logs that Kafka wrote and from records of every kind, converted."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.classic_group.events import Join
from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.classic_group.stored_group import group_tombstone
from odradek.broker.coordinator.consumer_group import records as consumer_records
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat
from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.group_coordinator import consumer_offsets_topic
from odradek.broker.coordinator.group_shard import GroupCoordinatorShard
from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER, Conversion
from odradek.broker.coordinator.migration import Migration
from odradek.broker.coordinator.offsets.committed_offsets import commit_record, offset_tombstone
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.runtime.loading import load
from odradek.broker.coordinator.runtime.records import CoordinatorRecord, encode_record
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import read_batch_header
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.stored_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from tests.storage.logs import NOW, TOPIC_ID, marker, open_log_dir

TOPIC = consumer_offsets_topic(BrokerConfig.load(overrides={"log.dirs": "unused"}))
GOLDEN_DIRS = Path(__file__).parents[1] / "storage" / "golden_dirs"


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


def migration() -> Migration:
    return Migration(lambda _: ConsumerGroupSettings(), ClassicSettings(), MetadataImage)


def empty_shard() -> GroupCoordinatorShard:
    return GroupCoordinatorShard({CLASSIC: migration().classic_group, CONSUMER: migration().consumer_group})


def loaded(log: Log, buffer_bytes: int = 1 << 20) -> GroupCoordinatorShard:
    shard = empty_shard()
    load(msgspec.structs.replace(TOPIC, load_buffer_bytes=buffer_bytes), log, shard, NOW)
    return shard


def append(log: Log, *records: CoordinatorRecord | tuple[bytes | None, bytes | None], **fields: object) -> None:
    builder = BatchBuilder(**fields)  # type: ignore[arg-type]
    for record in records:
        key, value = encode_record(record) if isinstance(record, CoordinatorRecord) else record
        builder.append(NOW, key, value)
    log.append_as_leader(memoryview(builder.build()), 0, NOW, Origin.COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)


def commit(offset: int, group: str = "g", topic: str = "t", partition: int = 0) -> CoordinatorRecord:
    return commit_record(group, topic, partition, CommittedOffset(offset, 3, "m", NOW, -1, TOPIC_ID, -1))


@pytest.mark.parametrize("buffer_bytes", [1, 150, 1 << 20])
def test_the_offsets_that_kafka_wrote_are_loaded(golden: LogDir, buffer_bytes: int) -> None:
    shard = loaded(golden.logs["__consumer_offsets", 20], buffer_bytes)

    offsets = {topic: rows[0].offset for topic, rows in shard.offsets.of_group("x").items()}
    assert offsets == {
        **dict.fromkeys(("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd"), 200),
        "rolled": 20000,
        "logappend": 100,
        "compacted": 3101,
        "idempotent": 100,
        "transactional": 66,
    }
    assert shard.offsets.count == 10
    assert (shard.groups["x"].state, shard.groups["x"].protocol_type) == ("Empty", "")


def test_the_group_that_kafka_wrote_is_loaded(golden: LogDir) -> None:
    shard = loaded(golden.logs["__consumer_offsets", 49])

    group = shard.groups["golden-group"]
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.protocol_type, group.generation_id) == ("Empty", "consumer", 2)
    committed = shard.offsets.get("golden-group", "codec-none", 0)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.committed_at_ms) == (150, -1, 1795242218527)


def test_a_commit_is_written_as_kafka_writes_it_in_every_byte(golden: LogDir) -> None:
    log = golden.logs["__consumer_offsets", 20]
    committed = loaded(log).offsets.get("x", "codec-none", 0)
    assert committed is not None

    batch = TOPIC.build_batch([commit_record("x", "codec-none", 0, committed)], committed.committed_at_ms)

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

    batch = TOPIC.build_batch([group.record_of_new_group()], record.timestamp)

    assert batch[16:] == theirs[16:]


@pytest.mark.parametrize("codec", Codec)
def test_the_last_commit_counts_and_a_tombstone_deletes_it(log: Log, codec: Codec) -> None:
    append(log, commit(1), commit(2), commit(5, partition=1), codec=codec)
    append(log, commit(3), offset_tombstone("g", "t", 1), codec=codec)

    shard = loaded(log)

    assert {index: row.offset for index, row in shard.offsets.of_group("g")["t"].items()} == {0: 3}
    assert shard.offsets.count == 1


def test_a_group_that_was_deleted_is_gone(log: Log) -> None:
    append(log, commit(1))
    append(log, offset_tombstone("g", "t", 0), group_tombstone("g"))

    shard = loaded(log)

    assert shard.groups == {}
    assert shard.offsets.of_group("g") == {}


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_a_transaction_count_once_it_is_committed(log: Log, committed: bool) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(log, commit(1))
    append(log, commit(2), **transaction)
    assert loaded(log).offsets.is_pending("g", "t", 0)

    log.append_as_leader(marker(7, 0, commit=committed), 0, NOW, Origin.COORDINATOR)

    shard = loaded(log)
    found = shard.offsets.get("g", "t", 0)
    assert found is not None
    assert found.offset == (2 if committed else 1)
    assert not shard.offsets.is_pending("g", "t", 0)


def test_a_commit_after_that_of_a_transaction_is_newer_whenever_the_transaction_ends(log: Log) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(log, commit(2), **transaction)
    append(log, commit(1))
    log.append_as_leader(marker(7, 0, commit=True), 0, NOW, Origin.COORDINATOR)

    found = loaded(log).offsets.get("g", "t", 0)

    assert found is not None
    assert found.offset == 1


def test_a_record_that_contradicts_itself_is_skipped(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    member = ConsumerMember("m", assigned={TOPIC_ID: {0: 1, 1: 1}})
    odd = consumer_records.current_assignment("odd", member)
    assert isinstance(odd.value, ConsumerGroupCurrentMemberAssignmentValue)
    odd.value.assigned_partitions[0].assignment_epochs = [1]  # of two partitions
    append(log, consumer_records.subscription("odd", member), odd, commit(7))

    with caplog.at_level(logging.ERROR):
        shard = loaded(log)

    assert [record.getMessage() for record in caplog.records if "skipped" in record.getMessage()]
    assert shard.groups["odd"].members_count == 1
    assert shard.offsets.of_group("g")["t"][0].offset == 7


def conversion(shard: GroupCoordinatorShard) -> Conversion:
    """Effects by which the stored classic group `g` becomes a consumer group."""
    append_group(shard)
    new_group = migration().consumer_group("g", NOW)
    tombstone = group_tombstone("g")
    return Conversion(new_group=new_group, records=[tombstone, *consumer_records.member_deleted("g", "m")])


def append_group(shard: GroupCoordinatorShard) -> None:
    shard.replay(ClassicGroup("g", ClassicSettings(), NOW).record_of_new_group(), 0, NOW)


def test_a_conversion_puts_the_new_group_in_place_when_its_records_are_written() -> None:
    shard = empty_shard()
    effects = conversion(shard)

    shard.event_completed("g", effects, None)

    assert shard.groups["g"] is effects.new_group


def test_a_conversion_that_cannot_be_written_changes_neither_group_nor_timers() -> None:
    shard = empty_shard()
    effects = conversion(shard)
    before = shard.groups["g"]

    shard.event_completed("g", effects, KafkaError(ErrorCode.NOT_COORDINATOR))

    assert shard.groups["g"] is before
    assert not effects.survive_failure


@pytest.mark.parametrize("error", [None, KafkaError(ErrorCode.NOT_COORDINATOR)])
def test_a_classic_group_exists_after_its_first_join_even_if_the_record_cannot_be_written(
    error: KafkaError | None,
) -> None:
    shard = empty_shard()
    effects = shard.handle("g", joining(), NOW)
    assert shard.groups == {}

    shard.event_completed("g", effects, error)

    assert shard.groups["g"].members_count == 1


def test_a_consumer_group_whose_first_records_cannot_be_written_does_not_exist() -> None:
    shard = empty_shard()
    request = ConsumerGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=1, topic_partitions=[])
    effects = shard.handle("g", ConsumerHeartbeat(PendingReply(), request, "", "c", "/h"), NOW)
    assert effects.records

    shard.event_completed("g", effects, KafkaError(ErrorCode.NOT_COORDINATOR))

    assert shard.groups == {}


@pytest.mark.parametrize("epoch", [7, -1, -2])
def test_only_a_member_that_joins_replaces_an_empty_group_of_the_other_type(epoch: int) -> None:
    shard = empty_shard()
    append_group(shard)
    request = ConsumerGroupHeartbeatRequest("g", "m", epoch)

    with pytest.raises(KafkaError, match="Group g is not a consumer group") as raised:
        shard.handle("g", ConsumerHeartbeat(PendingReply(), request, "", "c", "/h"), NOW)

    assert raised.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_join_parked_in_a_group_without_written_records_is_answered_when_the_group_moves() -> None:
    shard = empty_shard()
    join = joining()
    shard.handle("g", join, NOW)

    [effects] = shard.unloaded()

    [(pending_reply, reply)] = effects.replies
    assert pending_reply is join.pending_reply
    assert isinstance(reply, JoinGroupResponse)
    assert reply.error_code == ErrorCode.NOT_COORDINATOR


def joining() -> Join:
    """Return the JoinGroup of the first member, an old client that gets no id first."""
    return Join(
        PendingReply(), "", "m", None, "c", "/h", 30_000, 60_000, "consumer", (("range", b""),), "", False, True
    )
