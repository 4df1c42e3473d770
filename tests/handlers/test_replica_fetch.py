"""Fetches of followers: what they read, what they move, and what ends their wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.handlers.cluster import OTHER, OTHER_BROKER, SELF, publish
from tests.handlers.requests import batch, create, fetch, parked, produce, produce_request, values_in
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("only_here")

BOTH = {SELF: 1000, OTHER: 9}
VERSION = 18
LONG_MS = 60_000


def follower_request(
    topic_id: bytes, offset: int, *, broker_epoch: int = OTHER_BROKER.epoch, leader_epoch: int = 0, **fields: Any
) -> FetchRequest:
    wanted = FetchPartition(
        0, current_leader_epoch=leader_epoch, fetch_offset=offset, log_start_offset=0, partition_max_bytes=1 << 20
    )
    replica = ReplicaState(OTHER, broker_epoch)
    return FetchRequest(replica_state=replica, min_bytes=1, topics=[FetchTopic("", topic_id, [wanted])], **fields)


def row_of(response: FetchResponse) -> PartitionData:
    assert response.error_code == ErrorCode.NONE
    [[row]] = [topic.partitions for topic in response.responses]
    assert isinstance(row, PartitionData)
    return row


async def follow(wire: Wire, topic_id: bytes, offset: int, **fields: Any) -> PartitionData:
    return row_of(await wire.ask(follower_request(topic_id, offset, **fields), VERSION))


async def test_a_follower_reads_beyond_the_high_watermark_and_moves_it(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    request = produce_request("t", batch(b"a"), acks=-1)
    async with Wire("127.0.0.1", broker.port) as producer:
        await producer.send(request, 9)
        while not len(broker.services.produce_purgatory):  # noqa: ASYNC110 - a turn of the loop, not a pause
            await asyncio.sleep(0)

        first = await follow(wire, topic_id, 0)
        assert (values_in(first), first.high_watermark) == ([b"a"], 0)
        assert values_in(await fetch(wire, "t")) == []

        assert (await follow(wire, topic_id, 1)).high_watermark == 1
        [topic] = (await producer.receive(request, 9)).responses
    assert topic.partition_responses[0].error_code == ErrorCode.NONE
    assert values_in(await fetch(wire, "t")) == [b"a"]


@pytest.mark.parametrize("broker_epoch", [-1, OTHER_BROKER.epoch - 1, OTHER_BROKER.epoch + 1])
async def test_a_fetch_without_the_registered_broker_epoch_reads_and_moves_nothing(
    broker: Broker, wire: Wire, broker_epoch: int
) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    await produce(wire, "t", batch(b"a"))

    assert values_in(await follow(wire, topic_id, 0, broker_epoch=broker_epoch)) == [b"a"]
    assert (await follow(wire, topic_id, 1, broker_epoch=broker_epoch)).high_watermark == 0


async def test_a_fetch_before_version_15_has_no_broker_epoch_and_moves_nothing(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    await produce(wire, "t", batch(b"a"))
    request = follower_request(topic_id, 1)
    request.replica_id, request.replica_state = OTHER, ReplicaState()

    assert row_of(await wire.ask(request, 14)).high_watermark == 0


async def test_a_diverged_follower_moves_nothing(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    publish(broker, "t", isr=BOTH, leader=SELF)  # epoch 1
    await produce(wire, "t", batch(b"b"))
    request = follower_request(topic_id, 2, leader_epoch=1)
    request.topics[0].partitions[0].last_fetched_epoch = 0

    row = row_of(await wire.ask(request, VERSION))

    assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 1)
    assert broker.services.partitions.get("t", 0).high_watermark == 1


async def test_a_parked_follower_is_answered_at_the_next_append(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    request = follower_request(topic_id, 0, max_wait_ms=LONG_MS)
    await wire.send(request, VERSION)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"a"))

    row = row_of(await wire.receive(request, VERSION))
    assert (values_in(row), row.high_watermark) == ([b"a"], 0)


async def test_a_fetch_was_sent_after_the_answer_to_the_one_before(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    await wire.ask(follower_request(topic_id, 0, max_wait_ms=0), VERSION)
    state = broker.services.partitions.get("t", 0).followers.states[OTHER]
    assert state.sent_after < 0
    first_answer = state.answered_at

    request = follower_request(topic_id, 0, max_wait_ms=LONG_MS)
    await wire.send(request, VERSION)
    await parked(broker)
    assert state.sent_after == first_answer > 0

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"a"))
    await wire.receive(request, VERSION)
    assert state.sent_after == first_answer < state.answered_at


async def test_a_parked_follower_is_answered_when_the_high_watermark_passes_the_one_it_was_sent(
    broker: Broker, wire: Wire
) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    await produce(wire, "t", batch(b"a"))
    opened = await wire.ask(follower_request(topic_id, 0, session_epoch=0), VERSION)
    assert values_in(row_of(opened)) == [b"a"]

    # The follower has the record now, which commits it: it is answered at once.
    request = follower_request(topic_id, 1, session_id=opened.session_id, session_epoch=1, max_wait_ms=LONG_MS)
    assert row_of(await wire.ask(request, VERSION)).high_watermark == 1

    # It has been sent this, so the next request waits, until the high watermark moves for another reason.
    request = follower_request(
        topic_id, 1, session_id=opened.session_id, session_epoch=2, max_wait_ms=LONG_MS, broker_epoch=-1
    )
    request.min_bytes = 1_000_000
    await wire.send(request, VERSION)
    await parked(broker)
    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"b"))
        assert len(broker.services.fetch_purgatory) == 1
        await follow(producer, topic_id, 2)
    assert row_of(await wire.receive(request, VERSION)).high_watermark == 2


async def test_a_follower_outside_the_log_gets_the_bounds_of_the_log(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))
    broker.services.partitions.get("t", 0).log.update_log_start_offset(1)
    publish(broker, "t", isr=BOTH)

    for offset in (0, 4):
        row = await follow(wire, topic_id, offset)
        assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (row.log_start_offset, row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (1, 0, 3)
        row = await fetch(wire, "t", offset)
        assert (row.log_start_offset, row.diverging_epoch.end_offset) == (-1, -1)


async def test_bytes_for_followers_are_counted_as_replication(broker: Broker, wire: Wire) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    records = batch(b"a")
    await produce(wire, "t", records)

    await follow(wire, topic_id, 0)

    assert broker.metrics.replication_bytes_out == len(records)
    assert broker.metrics.topic("t").bytes_out == 0


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
async def test_the_latest_offset_is_not_available_until_the_records_of_earlier_epochs_are_committed(
    broker: Broker, wire: Wire, version: int, code: ErrorCode
) -> None:
    topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    await produce(wire, "t", batch(b"a"))
    publish(broker, "t", isr=BOTH, leader=SELF)  # epoch 1

    async def offset_at(timestamp: int) -> tuple[int, int]:
        wanted = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, timestamp)])]
        [topic] = (await wire.ask(ListOffsetsRequest(-1, topics=wanted), version)).topics
        return topic.partitions[0].error_code, topic.partitions[0].offset

    assert [await offset_at(timestamp) for timestamp in (-1, 0, -2)] == [(code, -1), (code, -1), (0, 0)]

    await follow(wire, topic_id, 1, leader_epoch=1)

    assert [await offset_at(timestamp) for timestamp in (-1, 0, -2)] == [(0, 1), (0, 0), (0, 0)]


async def test_whoever_claims_a_replica_id_at_another_listener_is_a_consumer(tmp_path: Path) -> None:
    listeners = "BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0"
    properties = {
        "listeners": listeners,
        "listener.security.protocol.map": "BROKERS:PLAINTEXT,CLIENTS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "log.dirs": str(tmp_path),
    }
    async with (
        Broker(properties) as broker,
        Wire("127.0.0.1", broker.ports["CLIENTS"]) as client,
        Wire("127.0.0.1", broker.ports["BROKERS"]) as follower,
    ):
        topic_id = await create(client, "t")
        publish(broker, "t", isr=BOTH)
        await produce(client, "t", batch(b"a"))

        assert values_in(await follow(client, topic_id, 0)) == []
        assert (await follow(client, topic_id, 1)).high_watermark == 0
        assert not broker.services.partitions.get("t", 0).followers.states[OTHER].has_fetched

        assert values_in(await follow(follower, topic_id, 0)) == [b"a"]
        assert (await follow(follower, topic_id, 1)).high_watermark == 1
        assert values_in(await follow(client, topic_id, 0)) == [b"a"]
