"""The first start on log directories of another broker: its topics are adopted."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.metadata.administration.topic_writes import PlannedTopic
from odradek.broker.metadata.adoption import adopt_if_due
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.broker.metadata.store.store import Put
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.offline.kraft_topics import KraftTopics
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.uuids import uuid_from_text
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.storage.logs import NODE, OTHER_ID, TOPIC_ID, append, open_log_dir
from tests.storage.test_golden import HERE, TOPICS
from tests.wire import Wire

KEEP = {"log.retention.ms": "-1"}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))


def forget_metadata(path: Path) -> None:
    for file in path.glob(f"{FILE_NAME}*"):
        file.unlink()


async def test_adopted_topics_keep_their_ids_and_records(golden: Path, caplog: pytest.LogCaptureFixture) -> None:
    properties = {"log.dirs": str(golden)} | KEEP
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        topics = broker.services.metadata.image.topics
        assert set(TOPICS) < set(topics)
        assert topics["transactional"].topic_id == uuid_from_text("2eUHgRqfStWy-DpSiN8B4w")
        assert len(topics["__consumer_offsets"].partitions) == 50
        assert topics["__consumer_offsets"].configs["cleanup.policy"] == "compact"
        assert topics["compacted"].configs == {}, "nothing says what they were"
        assert broker.log_dir.logs["rolled", 0].log_end_offset == 20000
        assert topics["rolled"].partitions[0].leader_epoch == 1, "the log has epoch 0"
        assert (await produce(wire, "rolled", batch(b"more"))).base_offset == 20000
        assert broker.log_dir.logs["rolled", 0].epoch_for_offset(20000) == 1
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("default properties" in line for line in said)
    assert any("begin empty" in line for line in said)
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert set(broker.services.metadata.image.topics) == set(topics)
        row = await fetch(wire, "rolled", 20000)
        assert values_in(row) == [b"more"]


async def test_only_the_first_start_adopts(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path / "logs")}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"a"))
    shutil.copytree(tmp_path / "logs" / "t-0", tmp_path / "logs" / "stray-0")
    shutil.copytree(tmp_path / "logs" / "t-0", tmp_path / "logs" / "same-id-0")
    (tmp_path / "logs" / "stray-0" / "partition.metadata").unlink()
    async with Broker(properties) as broker:
        assert set(broker.services.metadata.image.topics) == {"t"}
        assert ("stray", 0) in broker.log_dir.logs
    forget_metadata(tmp_path / "logs")
    async with Broker(properties) as broker:
        assert set(broker.services.metadata.image.topics) == {"same-id", "stray"}, "one topic for each id"


async def test_the_next_start_continues_an_interrupted_adoption(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the metadata fails at the seventh topic; no topic is lost or created twice."""
    from odradek.broker.metadata import adoption

    written: list[str] = []
    write_topic = adoption.write_topic

    async def fail_in_the_middle(metadata: Metadata, planned: PlannedTopic) -> bool:
        if len(written) == 6:
            raise OSError("the power is gone")
        written.append(planned.topic.name)
        return await write_topic(metadata, planned)

    monkeypatch.setattr(adoption, "write_topic", fail_in_the_middle)
    with pytest.raises(OSError, match="the power is gone"):
        await Broker({"log.dirs": str(golden)} | KEEP).start()
    monkeypatch.undo()
    async with Broker({"log.dirs": str(golden)} | KEEP) as broker:
        topics = broker.services.metadata.image.topics
        assert set(TOPICS) < set(topics)
        assert all(broker.log_dir.logs[name, 0].topic_id == topics[name].topic_id for name in TOPICS)
        assert broker.log_dir.logs["rolled", 0].log_end_offset == 20000


async def test_a_log_without_a_topic_id_gets_one_and_keeps_its_records(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    append(log_dir.create_log("old", 0, TOPIC_ID, LogConfig()), b"a", b"b")
    log_dir.close()
    (tmp_path / "old-0" / "partition.metadata").unlink()
    async with Broker({"log.dirs": str(tmp_path)} | KEEP) as broker, Wire("127.0.0.1", broker.port) as wire:
        row = await fetch(wire, "old")
        assert values_in(row) == [b"a", b"b"]
        topic_id = broker.services.metadata.image.topics["old"].topic_id
        assert topic_id != bytes(16)
    text = (tmp_path / "old-0" / "partition.metadata").read_text()
    assert uuid_from_text(text.split("topic_id: ")[1]) == topic_id


async def test_partitions_of_several_topics_of_one_name_are_not_adopted(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    for index in range(2):
        append(log_dir.create_log("torn", index, bytes([index + 1]) * 16, LogConfig()), b"a")
    log_dir.close()
    async with Broker({"log.dirs": str(tmp_path)} | KEEP) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert "torn" not in broker.services.metadata.image.topics
        row = await produce(wire, "torn", batch(b"no"))
        assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.log_dir.logs["torn", 1].log_end_offset == 1


async def test_a_directory_without_segments_is_not_adopted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Such as the directory of another program: it does not become a topic, and no deletion of a topic removes it."""
    mine = tmp_path / "demo-1" / "log" / "00000000000000000000.log"
    mine.parent.mkdir(parents=True)
    mine.write_text("of the user")
    (tmp_path / "demo-1" / "broker.log").write_text("of the user")
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "begun-0").mkdir()
    (tmp_path / "begun-0" / "partition.metadata").write_text("version: 0\ntopic_id: 2eUHgRqfStWy-DpSiN8B4w\n")
    async with Broker({"log.dirs": str(tmp_path)} | KEEP) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert not broker.services.metadata.image.topics
        assert sorted(path.name for path in (tmp_path / "demo-1").iterdir()) == ["broker.log", "log"]
        assert any("demo-1 alone" in message for message in caplog.messages)

        await wire.ask(CreateTopicsRequest([CreatableTopic("demo", 2, 1)], 5000), 7)
        assert (await produce(wire, "demo", batch(b"a"))).error_code == ErrorCode.NONE
        assert (await produce(wire, "demo", batch(b"a"), partition=1)).error_code != ErrorCode.NONE
        assert any("demo-1 cannot be a partition" in message for message in caplog.messages)
        await create(wire, "empty")
        assert (await produce(wire, "empty", batch(b"a"))).error_code == ErrorCode.NONE
        [deleted] = (await wire.ask(DeleteTopicsRequest(topic_names=["demo"], timeout_ms=5000), 5)).responses
        assert deleted.error_code == ErrorCode.NONE
    async with Broker({"log.dirs": str(tmp_path)} | KEEP) as broker:
        assert set(broker.services.metadata.image.topics) == {"empty"}
    assert mine.read_text() == "of the user"


async def test_a_log_of_a_topic_that_kafka_had_deleted_is_no_part_of_the_next_of_its_name(tmp_path: Path) -> None:
    """Kafka's controller knows the id of the living one; its directory was offline when the other was deleted."""
    for name, topic_id in (("a", TOPIC_ID), ("b", OTHER_ID)):
        log_dir = open_log_dir(tmp_path / name)
        append(log_dir.create_log("t", 0, topic_id, LogConfig()), b"x")
        log_dir.close()
    shutil.copy(tmp_path / "a" / "meta.properties", tmp_path / "b" / "meta.properties")
    log_dirs = LogDirs(
        [LogDir(tmp_path / name, clock=SystemClock(), randomness=SystemRandomness()) for name in ("a", "b")]
    )
    log_dirs.open(lambda _: LogConfig(), node_id=NODE)

    async def controllers() -> KraftTopics:
        return KraftTopics(ids={"t": OTHER_ID})

    async with Broker({"log.dirs": str(tmp_path / "c")}) as broker:
        metadata = broker.services.metadata
        await metadata.commit((), (Put(metadata.keys.adopting, b""),))
        await adopt_if_due(metadata, log_dirs, controllers)
        assert metadata.image.topics["t"].topic_id == OTHER_ID
    log_dirs.close()
