"""Partitions that move between the brokers of a cluster, while records arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.test_replication import Cluster
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.storage.test_old_formats import OLD
from tests.wire import Wire


class Moving(Cluster):
    """A cluster with one topic of one partition, `t`."""

    async def reassign(self, at: int, replicas: list[int] | None, topic: str = "t") -> ErrorCode:
        """Send the request to one broker."""
        wanted = [ReassignableTopic(topic, [ReassignablePartition(0, replicas)])]
        async with Wire("127.0.0.1", self.brokers[at].port) as wire:
            response = await wire.ask(AlterPartitionReassignmentsRequest(5000, True, wanted), 1)
        [[row]] = [each.partitions for each in response.responses]
        return ErrorCode(row.error_code)

    async def listed(self, at: int) -> list[tuple[list[int], list[int], list[int]]]:
        async with Wire("127.0.0.1", self.brokers[at].port) as wire:
            response = await wire.ask(ListPartitionReassignmentsRequest(5000, None), 0)
        return [
            (row.replicas, row.adding_replicas, row.removing_replicas)
            for topic in response.topics
            for row in topic.partitions
        ]

    def image(self, node_id: int) -> PartitionImage:
        return self.brokers[node_id].services.metadata.image.topics["t"].partitions[0]

    async def moved_to(self, *replicas: int) -> None:
        """Wait until all brokers see the partition with these replicas alone, in sync."""
        await self.until(
            lambda: all(
                (self.image(node).replicas, sorted(self.image(node).isr)) == (list(replicas), sorted(replicas))
                for node in self.brokers
            )
        )


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Moving]:
    async with AsyncExitStack() as stack:
        made = Moving(tmp_path)
        stack.push_async_callback(made.store.close)
        for node_id in (1, 2, 3):
            await made.start(node_id)
        await made.until(lambda: all(len(each.services.metadata.image.brokers) == 3 for each in made.brokers.values()))
        await create_topic(made.brokers[1].services.metadata, "t", assignments={0: [1]})
        await made.until(lambda: all("t" in each.services.metadata.image.topics for each in made.brokers.values()))
        await made.until(lambda: made.partition(1) is not None)
        yield made
        for node_id in tuple(made.brokers):
            await made.stop(node_id)


async def test_a_partition_moves_to_other_brokers_with_its_records(cluster: Moving, tmp_path: Path) -> None:
    assert await cluster.produce(1, b"one", b"two") is ErrorCode.NONE

    assert await cluster.reassign(3, [2, 3]) is ErrorCode.NONE
    await cluster.moved_to(2, 3)

    assert await cluster.listed(1) == []
    leader = await cluster.led_by_another(1)
    assert await cluster.produce(leader, b"three") is ErrorCode.NONE
    assert await cluster.values(leader) == [b"one", b"two", b"three"]
    assert cluster.log_bytes(2) == cluster.log_bytes(3)
    await cluster.until(lambda: not (tmp_path / "1" / "t-0").exists())
    assert await cluster.produce(1, b"x") is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_messages_of_old_formats_move_to_another_broker(cluster: Moving, tmp_path: Path) -> None:
    await cluster.stop(1)
    (segment,) = (tmp_path / "1" / "t-0").glob("*.log")
    segment.write_bytes(b"".join(OLD))
    (tmp_path / "1" / ".kafka_cleanshutdown").unlink()
    await cluster.start(1)
    await cluster.until(lambda: cluster.leader() == 1)
    assert await cluster.produce(1, b"new") is ErrorCode.NONE

    assert await cluster.reassign(1, [2, 3]) is ErrorCode.NONE
    await cluster.moved_to(2, 3)

    assert cluster.log_bytes(2) == cluster.log_bytes(3)
    assert cluster.log_bytes(2).startswith(b"".join(OLD))
    replica = cluster.partition(2)
    assert replica is not None
    assert replica.log.log_end_offset == 7


async def test_a_single_replica_gets_others_and_loses_them_again(cluster: Moving) -> None:
    assert await cluster.produce(1, b"one") is ErrorCode.NONE

    assert await cluster.reassign(1, [1, 2, 3]) is ErrorCode.NONE
    await cluster.moved_to(1, 2, 3)
    assert await cluster.produce(1, b"two") is ErrorCode.NONE
    assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)
    assert await cluster.reassign(2, [1]) is ErrorCode.NONE
    await cluster.moved_to(1)

    await cluster.until(lambda: cluster.partition(2) is None and cluster.partition(3) is None)
    assert await cluster.produce(1, b"three") is ErrorCode.NONE
    assert await cluster.values(1) == [b"one", b"two", b"three"]


async def test_a_reassignment_waits_for_its_broker_and_can_be_cancelled(cluster: Moving) -> None:
    await cluster.stop(3)
    assert await cluster.produce(1, b"one") is ErrorCode.NONE

    assert await cluster.reassign(2, [3]) is ErrorCode.NONE
    assert await cluster.listed(2) == [([3, 1], [3], [1])]
    assert await cluster.reassign(2, None) is ErrorCode.NONE
    await cluster.moved_to(1)
    assert await cluster.listed(2) == []
    assert await cluster.reassign(2, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert await cluster.values(1) == [b"one"]

    assert await cluster.reassign(2, [3]) is ErrorCode.NONE
    await cluster.start(3)
    await cluster.moved_to(3)
    assert await cluster.values(3) == [b"one"]


async def test_a_group_moves_with_its_partition(cluster: Moving) -> None:
    metadata = cluster.brokers[1].services.metadata
    await create_topic(metadata, "__consumer_offsets", assignments={0: [1]}, configs={"cleanup.policy": "compact"})
    await cluster.until(lambda: cluster.partition(1, "__consumer_offsets") is not None)
    async with Wire("127.0.0.1", cluster.brokers[1].port) as wire:
        await find_coordinator(wire, "g")
        assert await GroupMember(wire, "g").commit("t", 7) == ErrorCode.NONE

    assert await cluster.reassign(3, [2], "__consumer_offsets") is ErrorCode.NONE
    await cluster.until(lambda: cluster.leader("__consumer_offsets") == 2)

    async with Wire("127.0.0.1", cluster.brokers[2].port) as wire:
        await find_coordinator(wire, "g")
        assert await GroupMember(wire, "g").committed("t") == 7
    async with Wire("127.0.0.1", cluster.brokers[1].port) as wire:
        assert await GroupMember(wire, "g").commit("t", 8) == ErrorCode.NOT_COORDINATOR


async def test_a_replica_that_stays_eligible_leads_after_a_completed_reassignment(cluster: Moving) -> None:
    """It left the in-sync replicas when they were too few for a commit, so it has every committed record."""
    metadata = cluster.brokers[1].services.metadata
    await create_topic(metadata, "u", assignments={0: [3, 1, 2]}, configs={"min.insync.replicas": "3"})

    def image(node_id: int) -> PartitionImage:
        return cluster.brokers[node_id].services.metadata.image.topics["u"].partitions[0]

    await cluster.until(lambda: all("u" in each.services.metadata.image.topics for each in cluster.brokers.values()))
    await cluster.until(lambda: sorted(image(1).isr) == [1, 2, 3])
    await cluster.stop(2)
    await cluster.until(lambda: sorted(image(1).isr) == [1, 3] and sorted(image(1).eligible_leader_replicas) == [2])

    assert image(1).leader == 3
    assert await cluster.reassign(1, [1, 2], "u") == ErrorCode.NONE
    await cluster.until(lambda: image(1).replicas == [1, 2])
    assert (sorted(image(1).isr), sorted(image(1).eligible_leader_replicas)) == ([1], [2])

    await cluster.stop(1)
    await cluster.until(lambda: image(3).leader == -1)
    await cluster.start(2)
    await cluster.until(lambda: image(3).leader == 2)
