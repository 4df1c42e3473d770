"""Clients in a cluster with other brokers: waiting for replicas, and redirection to leaders."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import NodeEndpoint
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import batch, create, fetch, fetch_request, produce, produce_request, values_in
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("only_here")

BOTH = {SELF: 1000, OTHER: 9}


async def waiting(broker: Broker) -> None:
    """Wait until a producer waits."""
    while not len(broker.services.produce_purgatory):  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)


async def test_acks_all_waits_for_the_other_in_sync_replicas(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    request = produce_request("t", batch(b"a"), acks=-1)
    await wire.send(request, 9)
    await waiting(broker)
    async with Wire("127.0.0.1", broker.port) as other:
        assert values_in(await fetch(other, "t")) == []

        publish(broker, "t", isr={SELF: 1000})
        [[row]] = [topic.partition_responses for topic in (await wire.receive(request, 9)).responses]

        assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 0)
        assert values_in(await fetch(other, "t")) == [b"a"]
    assert len(broker.services.produce_purgatory) == 0


async def test_acks_all_times_out(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    request = produce_request("t", batch(b"a"), acks=-1)
    request.timeout_ms = 10

    [topic] = (await wire.ask(request, 9)).responses

    assert topic.partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_acks_all_fails_when_another_broker_leads(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    request = produce_request("t", batch(b"a"), acks=-1)
    await wire.send(request, 10)
    await waiting(broker)

    publish(broker, "t", isr=BOTH, leader=OTHER)
    response = await wire.receive(request, 10)

    row = response.responses[0].partition_responses[0]
    assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, OTHER)
    assert [node.node_id for node in response.node_endpoints] == [OTHER]


async def test_acks_1_does_not_wait(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", isr=BOTH)

    assert (await produce(wire, "t", batch(b"a"))).error_code == ErrorCode.NONE


async def test_acks_all_needs_min_insync_replicas(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", min_insync_replicas="2")
    publish(broker, "t", isr={SELF: 1000})

    assert (await produce(wire, "t", batch(b"a"), acks=-1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (await produce(wire, "t", batch(b"a"), acks=1)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [9, 10, 12])
async def test_a_producer_is_sent_to_the_leader(broker: Broker, wire: Wire, version: int) -> None:
    await create(wire, "t")
    publish(broker, "t", leader=OTHER, isr=BOTH)

    response = await wire.ask(produce_request("t", batch(b"a")), version)

    row = response.responses[0].partition_responses[0]
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    named_leader = (row.current_leader.leader_id, row.current_leader.leader_epoch, response.node_endpoints)
    assert named_leader == (
        (OTHER, 1, [NodeEndpoint(OTHER, "other", 9093, "south")]) if version >= 10 else (-1, -1, [])
    )


@pytest.mark.parametrize("version", [15, 16, 18])
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.FENCED_LEADER_EPOCH)]
)
async def test_a_consumer_is_sent_to_the_leader(
    broker: Broker, wire: Wire, version: int, epoch: int, code: ErrorCode
) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", leader=OTHER, isr=BOTH)
    topics = [FetchTopic("", topic_id, [FetchPartition(0, current_leader_epoch=epoch)])]

    response = await wire.ask(FetchRequest(topics=topics), version)

    row = response.responses[0].partitions[0]
    assert row.error_code == code
    named_leader = (row.current_leader.leader_id, row.current_leader.leader_epoch)
    assert named_leader == ((OTHER, 1) if version >= 16 else (-1, -1))
    nodes = [(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
    assert nodes == ([(OTHER, "other", 9093, "south")] if version >= 16 else [])


async def test_a_parked_consumer_is_sent_to_the_new_leader(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    request = fetch_request("t", max_wait_ms=60_000)
    await wire.send(request, 12)
    while not len(broker.services.fetch_purgatory):  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)

    publish(broker, "t", leader=OTHER, isr=BOTH)
    [topic] = (await wire.receive(request, 12)).responses

    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_metadata_shows_leaders_replicas_and_who_is_offline(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", leader=OTHER, isr=BOTH)

    response = await wire.ask(MetadataRequest(None), 12)

    assert [node.node_id for node in response.brokers] == [SELF, OTHER]
    [partition] = response.topics[0].partitions
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (OTHER, [SELF, OTHER], [SELF, OTHER])
    assert (partition.error_code, partition.offline_replicas) == (ErrorCode.NONE, [])

    publish(broker, "t", leader=-1, isr=BOTH)
    broker.services.metadata.image.brokers.pop(OTHER)
    [partition] = (await wire.ask(MetadataRequest(None), 12)).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [OTHER]
