"""Brokers that cannot reach the metadata store: what they serve, and what they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from odradek.broker.metadata.administration.topics import create_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.replicating import Cluster, three_brokers
from tests.handlers.requests import fetch
from tests.wire import Wire

GROUP = "g"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with three_brokers(tmp_path) as made:
        yield made


async def commit_offset(cluster: Cluster, node_id: int) -> ErrorCode:
    partitions = [OffsetCommitRequestPartition(0, 1)]
    request = OffsetCommitRequest(GROUP, topics=[OffsetCommitRequestTopic("t", partitions=partitions)])
    async with Wire("127.0.0.1", cluster.brokers[node_id].port) as wire:
        [topic] = (await wire.ask(request, 7)).topics
    return ErrorCode(topic.partitions[0].error_code)


async def fetch_offset(cluster: Cluster, node_id: int) -> ErrorCode:
    group = OffsetFetchRequestGroup(GROUP, topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])])
    async with Wire("127.0.0.1", cluster.brokers[node_id].port) as wire:
        [found] = (await wire.ask(OffsetFetchRequest(groups=[group]), 8)).groups
    return ErrorCode(found.error_code)


async def latest(cluster: Cluster, node_id: int) -> ErrorCode:
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])]
    async with Wire("127.0.0.1", cluster.brokers[node_id].port) as wire:
        [topic] = (await wire.ask(ListOffsetsRequest(-1, topics=topics), 7)).topics
    return ErrorCode(topic.partitions[0].error_code)


async def read(cluster: Cluster, node_id: int, topic: str = "t") -> ErrorCode:
    async with Wire("127.0.0.1", cluster.brokers[node_id].port) as wire:
        return ErrorCode((await fetch(wire, topic)).error_code)


async def coordinator(cluster: Cluster) -> int:
    """The coordinator of the group, when it answers."""
    async with Wire("127.0.0.1", cluster.brokers[1].port) as wire:
        request = FindCoordinatorRequest(key=GROUP)
        while (found := await wire.ask(request, 3)).error_code:  # noqa: ASYNC110 - it may depend on any broker
            await asyncio.sleep(0.01)
    node_id: int = found.node_id
    await until(lambda: commit_offset(cluster, node_id), ErrorCode.NONE)
    return node_id


async def until(ask: Callable[[], Awaitable[ErrorCode]], code: ErrorCode) -> None:
    """Ask until this is the answer."""
    async with asyncio.timeout(30):
        while await ask() is not code:  # noqa: ASYNC110 - it may depend on any broker
            await asyncio.sleep(0.01)


async def test_an_outage_of_the_store_stops_no_client(tmp_path: Path) -> None:
    # A slow machine may be late with a fetch, and clients try again then.
    async with three_brokers(tmp_path, replica_fetch_wait_max_ms="500") as cluster:
        await cluster.create()
        group_node = await coordinator(cluster)
        for access in cluster.access.values():
            access.cut()

        for ask in (
            lambda: cluster.produce(1, b"a"),
            lambda: cluster.produce(1, b"b", acks=1),
            lambda: read(cluster, 1),
            lambda: latest(cluster, 1),
            lambda: commit_offset(cluster, group_node),
            lambda: fetch_offset(cluster, group_node),
        ):
            await until(ask, ErrorCode.NONE)


async def test_a_deposed_leader_that_is_cut_off_refuses_clients(cluster: Cluster) -> None:
    await cluster.create()
    await create_topic(cluster.brokers[1].services.metadata, "alone", assignments={0: [1]})
    await cluster.until(lambda: cluster.partition(1, "alone") is not None)
    assert await cluster.produce(1, b"a") is ErrorCode.NONE
    ((kv, *_), _) = await cluster.store.range(cluster.brokers[1].services.metadata.keys.broker_id(1))

    cluster.access[1].cut()
    await cluster.store.revoke(kv.lease)
    await cluster.until(
        lambda: cluster.brokers[2].services.metadata.image.topics["t"].partitions[0].leader not in (-1, 1)
    )

    deposed = cluster.partition(1)
    assert deposed is not None
    assert deposed.is_leader
    await until(lambda: cluster.produce(1, b"lost", acks=1), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for ask in (read, latest):
        assert await ask(cluster, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await read(cluster, 1, "alone") is ErrorCode.NONE

    cluster.access[1].heal()
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))
    assert await read(cluster, cluster.leader()) is ErrorCode.NONE


async def test_a_coordinator_that_is_cut_off_and_deposed_is_none_any_more(cluster: Cluster) -> None:
    await cluster.create()
    node_id = await coordinator(cluster)
    ((kv, *_), _) = await cluster.store.range(cluster.brokers[node_id].services.metadata.keys.broker_id(node_id))

    cluster.access[node_id].cut()
    await cluster.store.revoke(kv.lease)

    await until(lambda: fetch_offset(cluster, node_id), ErrorCode.NOT_COORDINATOR)
    assert await commit_offset(cluster, node_id) is ErrorCode.NOT_COORDINATOR


async def test_the_strict_mode_refuses_everything_in_an_outage(tmp_path: Path) -> None:
    async with three_brokers(tmp_path, fencing_mode="strict") as cluster:
        await cluster.create()
        node_id = await coordinator(cluster)
        assert await cluster.produce(1, b"a") is ErrorCode.NONE
        for access in cluster.access.values():
            access.cut()

        for acks in (-1, 1):
            assert await cluster.produce(1, b"b", acks=acks) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await read(cluster, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await fetch_offset(cluster, node_id) is ErrorCode.NOT_COORDINATOR

        for access in cluster.access.values():
            access.heal()
        assert await cluster.values(1) == [b"a"]
