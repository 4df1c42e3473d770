"""Brokers of a cluster that lose logs: a log directory fails while they run, or a log is missing when they start."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.alter_configs import Change, alter_topic_configs
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders.lost_replicas import LostReplica
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Cmp, Op, StoreUnreachableError, TxnResult
from odradek.broker.startup.metadata_store import SeenRevision
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.names import METADATA_REVISION
from odradek.protocol.errors import ErrorCode
from tests.broker.test_replication import Cluster

FAILURE = OSError(5, "Input/output error")


class Disks(Cluster):
    """A cluster whose brokers have two log directories each."""

    async def start(self, node_id: int, **properties: str) -> Broker:
        paths = f"{self._directory}/{node_id}/a,{self._directory}/{node_id}/b"
        return await super().start(node_id, **{"log_dirs": paths} | properties)

    def image(self, index: int = 0, topic: str = "t") -> PartitionImage:
        """The partition in the image of the last broker."""
        return self.brokers[max(self.brokers)].services.metadata.image.topics[topic].partitions[index]

    def directory(self, node_id: int, index: int) -> LogDir:
        """The directory of a broker that has a partition's log."""
        found = self.brokers[node_id].log_dirs.directory_of("t", index)
        assert found is not None
        return found

    def registered(self) -> dict[int, BrokerImage]:
        return self.brokers[max(self.brokers)].services.metadata.image.brokers

    def lost_by(self, node_id: int) -> list[LostReplica]:
        return self.brokers[node_id].services.partitions.losses.all(())

    async def kill(self, node_id: int) -> None:
        """Kill a broker, and end its session."""
        keys = self.brokers[node_id].services.metadata.keys
        ((kv, *_), _) = await self.store.range(keys.broker_id(node_id))
        await self.brokers.pop(node_id).kill()
        await self.store.revoke(kv.lease)

    async def end_session(self, node_id: int) -> None:
        """End the lease of a live broker, as the store does after silence."""
        keys = self.brokers[node_id].services.metadata.keys
        ((kv, *_), _) = await self.store.range(keys.broker_id(node_id))
        await self.store.revoke(kv.lease)

    async def configure_topic(self, name: str, value: str) -> None:
        await alter_topic_configs(self.brokers[max(self.brokers)].services.metadata, "t", [Change(name, value)])

    async def in_second(self, node_id: int, assignment: list[int]) -> int:
        """Create a topic of which one broker has a log in each directory; return the partition in the second."""
        metadata = self.brokers[node_id].services.metadata
        await create_topic(metadata, "t", assignments={0: assignment, 1: assignment})
        await self.until(lambda: all(self.partition(node, "t", index) for node in assignment for index in (0, 1)))
        second = self.brokers[node_id].log_dirs.directories[1]
        return 0 if self.directory(node_id, 0) is second else 1


@pytest.fixture
async def disks(tmp_path: Path) -> AsyncIterator[Disks]:
    async with AsyncExitStack() as stack:
        made = Disks(tmp_path)
        stack.push_async_callback(made.store.close)
        for node_id in (1, 2, 3):
            await made.start(node_id)
        await made.until(lambda: all(len(each.services.metadata.image.brokers) == 3 for each in made.brokers.values()))
        yield made
        for node_id in tuple(made.brokers):
            await made.stop(node_id)


class CutOff:
    """The store as one broker sees it. While `is_cut`, no transaction of that broker arrives."""

    def __init__(self, store: InMemoryStore) -> None:
        self.is_cut = False
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        if self.is_cut:
            await asyncio.sleep(0.01)
            raise StoreUnreachableError("cut off")
        return await self._store.txn(when, then)


async def test_a_broker_that_cannot_report_a_failed_directory_stops(disks: Disks, tmp_path: Path) -> None:
    store = CutOff(disks.store)
    properties = {"node.id": "4", "log.dirs": f"{tmp_path}/4/a,{tmp_path}/4/b", "log.dir.failure.timeout.ms": "100"}
    async with Broker(properties, store=store) as broker:  # type: ignore[arg-type]
        disks.brokers[4] = broker
        await disks.in_second(4, [4])
        store.is_cut = True

        broker.log_dirs.directories[1].failure.fail("testing", FAILURE)
        await asyncio.wait_for(broker.failed.wait(), 30)

        store.is_cut = False
        del disks.brokers[4]


async def test_partitions_in_a_failed_directory_are_led_by_others(disks: Disks) -> None:
    lost = await disks.in_second(1, [1, 2, 3])

    disks.directory(1, lost).failure.fail("testing", FAILURE)

    await disks.until(lambda: disks.image(lost).leader == 2)
    await disks.until(lambda: sorted(disks.image(lost).isr) == [2, 3])
    await disks.until(lambda: sorted(disks.image(1 - lost).isr) == [1, 2, 3])
    assert (disks.image(1 - lost).leader, disks.image(1 - lost).leader_epoch) == (1, 0)
    first = disks.brokers[1]
    await disks.until(lambda: first.services.metadata.image.brokers[1].log_dirs == [first.log_dir.meta.directory_id])
    assert first.services.metadata.image.brokers[1].epoch == first.services.metadata.broker_epoch
    assert not first.failed.is_set()

    epoch = first.services.metadata.broker_epoch
    await disks.stop(1)
    await disks.until(lambda: 1 not in disks.registered())  # it has ended its session, which does not expire here
    await disks.start(1)
    await disks.until(lambda: 1 in disks.registered())
    assert disks.registered()[1].intact_since == epoch, "it has lost nothing but what it reported"


async def test_a_failed_first_directory_is_reported_although_the_broker_stops(disks: Disks) -> None:
    """After the error the disk may lack what was acknowledged: the broker must not lead it after a restart."""
    index = 1 - await disks.in_second(1, [1, 2, 3])

    disks.directory(1, index).failure.fail("testing", FAILURE)

    await disks.brokers[1].failed.wait()
    await disks.until(lambda: sorted(disks.image(index).isr) == [2, 3] and disks.image(index).leader == 2)


async def test_a_follower_leaves_the_isr_of_partitions_in_a_failed_directory(disks: Disks) -> None:
    lost = await disks.in_second(2, [1, 2, 3])

    disks.directory(2, lost).failure.fail("testing", FAILURE)

    await disks.until(lambda: sorted(disks.image(lost).isr) == [1, 3])
    assert (disks.image(lost).leader, disks.image(lost).leader_epoch) == (1, 0)
    await disks.until(lambda: sorted(disks.image(1 - lost).isr) == [1, 2, 3])


async def test_a_partition_with_its_only_replica_in_a_failed_directory_has_no_leader_until_it_returns(
    disks: Disks,
) -> None:
    lost = await disks.in_second(2, [2])

    disks.directory(2, lost).failure.fail("testing", FAILURE)
    await disks.until(lambda: disks.image(lost).leader == -1)
    assert list(disks.image(lost).isr) == [2]
    epoch = disks.registered()[2].epoch
    await disks.end_session(2)  # to register again does not bring the log back
    await disks.until(lambda: 2 in disks.registered() and disks.registered()[2].epoch > epoch)
    await disks.until(lambda: disks.image(1 - lost).leader == 2)
    assert disks.image(lost).leader == -1

    await disks.stop(2)
    await disks.start(2)
    await disks.until(lambda: disks.image(lost).leader == 2)
    assert disks.partition(2, "t", lost) is not None


async def test_an_unclean_election_skips_the_failed_directory(disks: Disks) -> None:
    lost = await disks.in_second(1, [1, 2])
    await disks.stop(2)
    await disks.until(lambda: list(disks.image(lost).isr) == [1])
    await disks.configure_topic("unclean.leader.election.enable", "true")

    disks.directory(1, lost).failure.fail("testing", FAILURE)
    await disks.until(lambda: disks.image(lost).leader == -1)
    await disks.start(2)

    await disks.until(lambda: disks.image(lost).leader == 2)


async def test_a_broker_with_a_missing_log_does_not_lead_with_an_empty_one(disks: Disks, tmp_path: Path) -> None:
    await disks.in_second(1, [1, 2])
    assert await disks.produce(1, b"kept") is ErrorCode.NONE
    await disks.stop(2)
    await disks.stop(1)
    await disks.until(lambda: (disks.image().leader, list(disks.image().isr)) == (-1, [1]))
    [path] = (tmp_path / "1").glob("*/t-0")
    shutil.rmtree(path)

    await disks.start(1)
    await disks.start(2)

    assert disks.image().leader == -1
    assert disks.partition(1) is None
    await disks.configure_topic("unclean.leader.election.enable", "true")
    await disks.until(lambda: disks.image().leader == 2 and sorted(disks.image().isr) == [1, 2])
    assert await disks.values(2) == [b"kept"]
    assert disks.log_bytes(1) == disks.log_bytes(2) != b""


@pytest.mark.parametrize("is_whole", [True, False], ids=["the same disks", "another disk"])
async def test_a_topic_whose_brokers_were_killed_before_they_made_its_logs_begins_empty(
    disks: Disks, tmp_path: Path, is_whole: bool
) -> None:
    """Or lost power before the logs were on a disk. A disk that was replaced may have had the log."""
    await disks.in_second(1, [1, 2])
    for node_id in (1, 2):
        await disks.kill(node_id)
        for path in (tmp_path / f"{node_id}").glob("*/t-*"):
            shutil.rmtree(path)
        if not is_whole:
            (tmp_path / f"{node_id}" / "b" / METADATA_REVISION).unlink()

    await disks.start(1)
    await disks.start(2)

    if not is_whole:
        await disks.until(lambda: len(disks.lost_by(2)) == 2)
        assert disks.image().leader == -1
        return
    await disks.until(lambda: all(disks.leader("t", index) > 0 for index in (0, 1)))
    await disks.until(lambda: all(sorted(disks.image(index).isr) == [1, 2] for index in (0, 1)))
    assert await disks.produce(disks.leader(), b"one") is ErrorCode.NONE
    assert disks.log_bytes(1) == disks.log_bytes(2) != b""


async def test_a_log_that_was_synced_can_come_back(disks: Disks, tmp_path: Path) -> None:
    await disks.in_second(1, [1, 2])
    for node_id in (1, 2):
        broker = disks.brokers[node_id]
        services = broker.services
        seen = SeenRevision(services.metadata, services.partitions, broker.log_dirs, services.partitions.threads)
        await seen.sync_and_store()
        await disks.kill(node_id)
        for path in (tmp_path / f"{node_id}").glob("*/t-*"):
            path.rename(path.parent.with_name(f"{path.parent.name}-{path.name}"))

    await disks.start(1)
    await disks.start(2)
    await disks.until(lambda: len(disks.lost_by(2)) == 2)
    assert [disks.image(index).leader for index in (0, 1)] == [-1, -1]
    await disks.stop(2)
    for path in (tmp_path / "2").glob("?-t-*"):
        path.rename(path.with_name(path.name[0]) / path.name[2:])
    await disks.start(2)

    await disks.until(lambda: all(disks.leader("t", index) == 2 for index in (0, 1)))


async def test_a_stop_waits_until_what_was_seen_is_written(disks: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes the file once more, and of two writers one would find the other's file already renamed."""
    await disks.in_second(1, [1])
    broker = disks.brokers[1]
    services = broker.services
    seen = SeenRevision(services.metadata, services.partitions, broker.log_dirs, services.partitions.threads)
    began, may_end = threading.Event(), threading.Event()

    def write(*_: object) -> None:
        began.set()
        may_end.wait()

    with monkeypatch.context() as patch:
        patch.setattr(LogDirs, "store_seen_metadata", write)
        storing = asyncio.create_task(seen.store())
        await asyncio.to_thread(began.wait)
        storing.cancel()
        await asyncio.wait((storing,), timeout=0.1)
        is_over = storing.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await storing
    assert not is_over


async def test_an_only_replica_that_is_gone_begins_anew(disks: Disks, tmp_path: Path) -> None:
    await disks.in_second(1, [1])
    path = next(path for path in (tmp_path / "1").glob("*/t-*"))
    index = int(path.name[-1])
    await disks.stop(1)
    shutil.rmtree(path)

    await disks.start(1)

    await disks.until(lambda: disks.image(index).leader == 1)
    await disks.until(lambda: disks.partition(1, "t", index) is not None)
    assert disks.image(index).leader_epoch > 1
    partitions = disks.brokers[1].services.partitions
    assert not partitions.losses.all(partitions)
