"""Elections in a cluster of brokers: on request at any broker, and by the controller's periodic check."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.broker.test_replication import Cluster
from tests.wire import Wire


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        made = Cluster(tmp_path)
        stack.push_async_callback(made.store.close)
        yield made
        for node_id in tuple(made.brokers):
            await made.stop(node_id)


async def _start(cluster: Cluster, **properties: str) -> None:
    for node_id in (1, 2, 3):
        await cluster.start(node_id, **properties)
    await cluster.until(
        lambda: all(len(each.services.metadata.image.brokers) == 3 for each in cluster.brokers.values())
    )
    await cluster.create()


async def _bounce_leader(cluster: Cluster, **properties: str) -> None:
    """Stop the preferred leader, start it again, and wait until it is in sync, but does not lead."""
    await cluster.stop(1)
    await cluster.led_by_another(1)
    await cluster.start(1, **properties)
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))


async def test_any_broker_runs_an_election_on_request(cluster: Cluster) -> None:
    await _start(cluster)
    await _bounce_leader(cluster)
    assert await cluster.produce(cluster.leader(), b"kept") is ErrorCode.NONE

    async with Wire("127.0.0.1", cluster.brokers[3].port) as wire:
        response = await wire.ask(ElectLeadersRequest(0, [TopicPartitions("t", [0])], 5000), 2)
        again = await wire.ask(ElectLeadersRequest(0, [TopicPartitions("t", [0])], 5000), 2)

    [[row], [refused]] = [each.replica_election_results[0].partition_result for each in (response, again)]
    assert row.error_code == ErrorCode.NONE
    assert refused.error_code == ErrorCode.ELECTION_NOT_NEEDED
    assert refused.error_message == "Leader election not needed for topic partition."  # as recorded from Kafka
    await cluster.until(lambda: cluster.leader() == 1)
    assert await cluster.produce(1, b"more") is ErrorCode.NONE
    assert await cluster.values(1) == [b"kept", b"more"]


async def test_the_preferred_leader_returns_by_itself(cluster: Cluster) -> None:
    check = {"leader_imbalance_check_interval_seconds": "1"}
    await _start(cluster, **check)

    await _bounce_leader(cluster, **check)

    await cluster.until(lambda: cluster.leader() == 1)


async def test_the_periodic_check_can_be_switched_off(cluster: Cluster) -> None:
    await cluster.start(1)
    assert "leader balance" in {task.get_name() for task in asyncio.all_tasks()}
    await cluster.stop(1)

    await cluster.start(1, auto_leader_rebalance_enable="false")

    assert "leader balance" not in {task.get_name() for task in asyncio.all_tasks()}
