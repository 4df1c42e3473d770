"""A topic is deleted and made again while one of the log directories of its broker is offline; then that is back."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.metadata.store.store import Delete
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.test_failed_log_dir import FAILURE, properties
from tests.broker.test_lost_replicas import Disks
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.peers import odradek
from tests.wire import Wire

PARTITIONS = 2


async def fill(wire: Wire, prefix: bytes) -> None:
    for partition in range(PARTITIONS):
        row = await produce(wire, "t", batch(prefix + b"%d" % partition), partition)
        assert row.error_code == ErrorCode.NONE


async def values(wire: Wire) -> list[list[bytes | None]]:
    return [values_in(await fetch(wire, "t", partition=partition)) for partition in range(PARTITIONS)]


async def make_again(wire: Wire) -> None:
    request = DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=5000)
    assert [each.error_code for each in (await wire.ask(request, 6)).responses] == [ErrorCode.NONE]
    await create(wire, "t", PARTITIONS)


def take_away(directory: Path) -> None:
    """A directory that cannot be opened, as after its disk was lost."""
    directory.rename(directory.with_name("elsewhere"))
    directory.write_text("not a directory")


def give_back(directory: Path) -> None:
    directory.unlink()
    directory.with_name("elsewhere").rename(directory)


def partitions_in(directory: Path) -> list[str]:
    """The directories of partitions of `t`, without the random part of their names."""
    names = sorted(each.name for each in directory.glob("t-*"))
    return [name.partition(".")[0] + name[name.rindex("-") :] if "." in name else name for name in names]


@pytest.fixture
async def returned(tmp_path: Path) -> Path:
    """Directories `a` and `b` of a stopped broker: both partitions of the living topic in `a`, an older one in `b`."""
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", PARTITIONS)
        await fill(wire, b"old")
    take_away(tmp_path / "b")
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await make_again(wire)
        await fill(wire, b"new")
    give_back(tmp_path / "b")
    assert {"t-0", "t-1"} < {*partitions_in(tmp_path / "a")}
    assert len(partitions_in(tmp_path / "b")) == 1
    return tmp_path


async def test_the_older_topic_is_deleted_when_its_directory_is_back(returned: Path) -> None:
    (stale,) = partitions_in(returned / "b")
    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"new0"], [b"new1"]]
        assert partitions_in(returned / "b") == [f"{stale}-delete"]
        assert broker.log_dirs.directories[1].logs == {}
    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"new0"], [b"new1"]]
        assert partitions_in(returned / "b") == []


async def test_the_older_topic_is_set_aside_without_a_record_of_its_deletion(returned: Path) -> None:
    (stale,) = partitions_in(returned / "b")
    (returned / "b").rename(returned / "still away")
    async with Broker(properties(returned)) as broker:
        metadata = broker.services.metadata
        records = [Delete(metadata.keys.topic_deleted(topic_id)) for topic_id in metadata.image.deleted]
        assert len(records) == 1
        await metadata.commit((), records)
    (returned / "b" / "meta.properties").unlink()
    for each in (returned / "b").iterdir():
        each.unlink()
    (returned / "b").rmdir()
    (returned / "still away").rename(returned / "b")

    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"new0"], [b"new1"]]

    assert partitions_in(returned / "b") == [f"{stale}-stray"]


async def test_a_read_only_broker_serves_the_living_topic_and_changes_nothing(returned: Path) -> None:
    before = partitions_in(returned / "b")
    async with (
        Broker(properties(returned), read_only=True) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        assert await values(wire) == [[b"new0"], [b"new1"]]
    assert partitions_in(returned / "b") == before


async def test_the_name_can_be_used_again_after_the_return(returned: Path) -> None:
    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await make_again(wire)
        await fill(wire, b"newest")
    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"newest0"], [b"newest1"]]


async def test_the_living_topic_may_be_in_the_later_directory(tmp_path: Path) -> None:
    """The first directory with a log of that name has the older topic."""
    three = {**properties(tmp_path), "log.dirs": ",".join(f"{tmp_path}/{name}" for name in "abc")}
    async with Broker(three) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", PARTITIONS)
        await fill(wire, b"old")
        assert broker.log_dirs.directory_of("t", 1) is broker.log_dirs.directories[1]
    take_away(tmp_path / "b")
    async with Broker(three) as broker, Wire("127.0.0.1", broker.port) as wire:
        await make_again(wire)
        await fill(wire, b"new")
        assert {directory.path.name for directory in broker.log_dirs.directories if directory.logs} == {"a", "c"}
    give_back(tmp_path / "b")

    async with Broker(three) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"new0"], [b"new1"]]
        assert partitions_in(tmp_path / "b") == ["t-1-delete"]


async def test_two_older_topics_both_make_room_for_the_living_one(returned: Path) -> None:
    take_away(returned / "b")
    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        broker.log_dirs.refuse_all()  # the deletion is decided, and a kill comes before it is done
        request = DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=1)
        await wire.ask(request, 6)
        await broker.services.metadata.wait_for_revision(broker.services.metadata.image.revision)
        assert "t" not in broker.services.metadata.image.topics
        await create_topic(broker.services.metadata, "t", PARTITIONS, 1)
        await broker.kill()
    give_back(returned / "b")

    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await fill(wire, b"newest")
        assert await values(wire) == [[b"newest0"], [b"newest1"]]
    async with Broker(properties(returned)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"newest0"], [b"newest1"]]


async def test_a_topic_made_again_after_its_directory_failed_is_served_from_another(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", PARTITIONS)
        await fill(wire, b"old")
        broker.log_dirs.directories[1].failure.fail("testing", FAILURE)

        await make_again(wire)
        await fill(wire, b"new")

        assert await values(wire) == [[b"new0"], [b"new1"]]
        assert {broker.log_dirs.directory_of("t", index) for index in range(PARTITIONS)} == {broker.log_dirs.first}
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert await values(wire) == [[b"new0"], [b"new1"]]


@pytest.fixture
async def disks(tmp_path: Path) -> AsyncIterator[Disks]:
    made = Disks(tmp_path)
    for node_id in (1, 2):
        await made.start(node_id)
    yield made
    for node_id in tuple(made.brokers):
        await made.stop(node_id)
    await made.store.close()


async def test_a_member_of_a_cluster_follows_the_living_topic(disks: Disks, tmp_path: Path) -> None:
    index = await disks.in_second(2, [1, 2])
    metadata = disks.brokers[1].services.metadata
    await disks.stop(2)
    take_away(tmp_path / "2" / "b")
    await disks.start(2)
    await delete_topic(metadata, name="t")
    await create_topic(metadata, "t", assignments={0: [1, 2], 1: [1, 2]})
    await disks.until(lambda: all(disks.partition(2, "t", each) is not None for each in range(PARTITIONS)))
    await disks.stop(2)
    give_back(tmp_path / "2" / "b")

    await disks.start(2)

    topic_id = metadata.image.topics["t"].topic_id
    for each in range(PARTITIONS):
        partition = disks.partition(2, "t", each)
        assert partition is not None
        assert partition.log.topic_id == topic_id
    assert partitions_in(tmp_path / "2" / "b") == [f"t-{index}-delete"]


@pytest.mark.process
async def test_a_process_starts_when_its_second_directory_is_back(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    server = odradek.prepare(tmp_path, {"log.dirs": f"{first},{second}"})
    server.start()
    try:
        async with Wire("127.0.0.1", server.port) as wire:
            await create(wire, "t", PARTITIONS)
            await fill(wire, b"old")
        server.kill()
        take_away(second)
        server.start()
        async with Wire("127.0.0.1", server.port) as wire:
            await make_again(wire)
            await fill(wire, b"new")
        server.kill()
        give_back(second)

        server.start()

        async with Wire("127.0.0.1", server.port) as wire:
            assert await values(wire) == [[b"new0"], [b"new1"]]
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, 60) == 0
    finally:
        if server.is_alive:
            server.kill()
    assert [name[len("t-1") :] for name in partitions_in(second)] == ["-delete"]
    assert "Traceback" not in server.printed()
