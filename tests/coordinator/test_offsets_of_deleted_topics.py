"""Committed offsets outlive their topic if the coordinator misses its deletion; the next one does not inherit them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.offsets.deleted_topics import of_deleted
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.metadata.administration.topics import delete_topic
from odradek.broker.metadata.image import MetadataImage, TopicImage
from odradek.broker.metadata.store.store import Delete
from odradek.broker.metadata.values import DeletedTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import OffsetFetchRequestTopics
from odradek.protocol.schema import ZERO_UUID
from tests.handlers.committing_producer import CommittingProducer
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import create
from tests.wire import Wire

OLD_CLIENT = 4
"""A version of OffsetCommit with a time of expiry; its records have no topic id."""


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[tuple[Broker, Wire, GroupMember]]:
    properties = {"log.dirs": str(path), "offsets.topic.num.partitions": "1"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await find_coordinator(wire, "g")
        yield broker, wire, GroupMember(wire, "g")


async def delete_and_kill(broker: Broker, name: str = "t") -> None:
    """Delete a topic; the process is killed before the coordinator has written its tombstones."""
    broker.services.groups.stop()
    await delete_topic(broker.services.metadata, name=name)
    await broker.kill()


def stored(broker: Broker) -> list[tuple[str, int]]:
    """The offsets in the coordinator's memory."""
    (shard,) = broker.services.groups.shards()
    return [(topic, commit.offset) for topic, _, commit in shard.offsets.commits_of("g")]


async def test_a_topic_made_again_inherits_no_offset_that_the_coordinator_had_no_time_to_delete(tmp_path: Path) -> None:
    async with running(tmp_path) as (broker, wire, group):
        await create(wire, "t")
        await create(wire, "kept")
        assert await group.commit("t", 90) == ErrorCode.NONE
        assert await group.commit("kept", 7) == ErrorCode.NONE
        await delete_and_kill(broker)

    async with running(tmp_path) as (broker, wire, group):
        topic_id = await create(wire, "t")

        assert [await group.committed("t", version) for version in (8, 9)] == [-1, -1]
        (by_id,) = (await group.fetch(10, [OffsetFetchRequestTopics("", topic_id, [0])])).topics
        assert by_id.partitions[0].committed_offset == -1
        assert [each.name for each in (await group.fetch()).topics] == ["kept"]
        await broker.services.partitions.settled()
        assert stored(broker) == [("kept", 7)]
        assert await group.commit("t", 3) == ErrorCode.NONE
        assert await group.committed("t") == 3

    async with running(tmp_path) as (broker, wire, group):
        assert await group.committed("t") == 3
        assert await group.committed("kept") == 7


async def test_offsets_are_deleted_by_the_expiration_if_the_log_refused_it_before(tmp_path: Path) -> None:
    async with running(tmp_path) as (broker, wire, group):
        await create(wire, "t")
        assert await group.commit("t", 90) == ErrorCode.NONE
        (shard,) = broker.services.groups.shards()
        kept = list(shard.offsets.commits_of("g"))
        await delete_topic(broker.services.metadata, name="t")
        await create(wire, "t")
        assert stored(broker) == []
        for topic, index, commit in kept:  # as if its tombstone had not been written
            shard.offsets._committed.put("g", topic, index, commit)  # noqa: SLF001 - the state after a refused append
        assert stored(broker) == [("t", 90)]

        assert await group.committed("t") == -1
        await broker.services.groups.expire()

        assert stored(broker) == []


async def test_an_offset_of_a_transaction_that_ends_after_the_topic_was_made_again_is_not_inherited(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (broker, wire, _):
        await create(wire, "t")
        producer = CommittingProducer(wire, "g")
        await producer.init()
        await producer.add_offsets()
        assert await producer.commit_one(3, 90) == ErrorCode.NONE
        await delete_and_kill(broker)

    async with running(tmp_path) as (broker, wire, _):
        await create(wire, "t")
        producer.wire = wire
        await producer.end()

        assert await producer.read_stable() == -1
        assert stored(broker) == [("t", 90)]
        await broker.services.groups.expire()
        assert stored(broker) == []


async def test_an_offset_without_an_id_goes_with_the_name_of_a_deleted_topic(tmp_path: Path) -> None:
    async with running(tmp_path) as (broker, wire, group):
        await create(wire, "t")
        assert await group.commit("t", 90, OLD_CLIENT, retention_time_ms=1_000_000) == ErrorCode.NONE
        await delete_and_kill(broker)

    async with running(tmp_path) as (broker, wire, group):
        assert stored(broker) == []
        await create(wire, "t")
        assert await group.committed("t") == -1


async def test_offsets_stay_if_the_topic_is_missing_without_a_record_of_its_deletion(tmp_path: Path) -> None:
    """Its metadata may come back."""
    async with running(tmp_path) as (broker, wire, group):
        topic_id = await create(wire, "t")
        assert await group.commit("t", 90) == ErrorCode.NONE
        broker.services.groups.stop()
        metadata = broker.services.metadata
        await delete_topic(metadata, name="t")
        await metadata.commit((), (Delete(metadata.keys.topic_deleted(topic_id)),))
        await broker.kill()

    async with running(tmp_path) as (broker, wire, group):
        await broker.services.groups.expire()
        assert stored(broker) == [("t", 90)]


OLD, NEW, OTHER = b"o" * 16, b"n" * 16, b"x" * 16


@pytest.mark.parametrize(
    ("topic_id", "living", "deleted", "expected"),
    [
        (OLD, OLD, (), False),
        (OLD, NEW, (), True),
        (OLD, None, (), False),
        (OLD, None, (OLD,), True),
        (OLD, NEW, (OLD,), True),
        (NEW, NEW, (OLD,), False),
        (NEW, None, (OLD,), True),
        (ZERO_UUID, NEW, (OLD,), False),
        (ZERO_UUID, None, (OLD,), True),
        (ZERO_UUID, None, (), False),
    ],
)
def test_topic_ids_decide(topic_id: bytes, living: bytes | None, deleted: tuple[bytes, ...], expected: bool) -> None:
    topics = {} if living is None else {"t": TopicImage("t", living, [], {})}
    image = MetadataImage(topics=topics, deleted={each: DeletedTopic("t", 0) for each in deleted})
    commit = CommittedOffset(1, -1, "", 0, -1, topic_id, 0)
    assert of_deleted(image)("t", commit) is expected
