"""Moving the clock of a running broker: each kind of deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from odradek.broker.broker import Broker
from odradek.broker.replication.partition import Partition
from odradek.broker.testing.movable_clock import MovableClock
from odradek.client.consumer.consumer import Consumer
from odradek.client.producer.producer import Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.handlers.configs import GROUP, set_to
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import create, fetch, fetch_request, new_producer_id, parked, produce, values_in
from tests.handlers.transactional_batches import ProducingProducer
from tests.wire import Wire

PROPERTIES = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


class Aging:
    """A broker with a clock that moves, and a connection to it."""

    def __init__(self, broker: Broker, wire: Wire, clock: MovableClock) -> None:
        self.broker = broker
        self.wire = wire
        self.clock = clock

    def partition(self, topic: str = "t") -> Partition:
        return self.broker.services.partitions.get(topic, 0)

    def batch(self, value: bytes | None, key: bytes = b"k", **fields: Any) -> bytes:
        """A batch of now."""
        builder = BatchBuilder(**fields)
        builder.append(self.clock.time_ms(), key, value)
        return bytes(builder.build())

    async def produce(self, value: bytes | None, key: bytes = b"k", topic: str = "t", **fields: Any) -> None:
        row = await produce(self.wire, topic, self.batch(value, key, **fields))
        assert row.error_code == ErrorCode.NONE

    def files(self, pattern: str) -> list[str]:
        return sorted(path.name for path in self.broker.log_dir.path.glob(pattern))

    async def group_state(self, group_id: str) -> str:
        [group] = (await self.wire.ask(DescribeGroupsRequest([group_id]), 5)).groups
        return str(group.group_state)


@pytest.fixture
def properties() -> dict[str, str]:
    return {}


@pytest.fixture
async def aging(properties: dict[str, str]) -> AsyncIterator[Aging]:
    clock = MovableClock()
    async with (
        Broker({**PROPERTIES, **properties}, clock=clock) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        yield Aging(broker, wire, clock)


# ----------------------------------------------------------------------------------------------------------- the logs


async def test_retention_deletes_segments_and_their_files_after_the_delay(aging: Aging) -> None:
    await create(aging.wire, "t", retention_ms="3600000", file_delete_delay_ms="60000")
    await aging.produce(b"a")
    await aging.clock.advance(minutes=59)
    assert values_in(await fetch(aging.wire, "t", 0)) == [b"a"]

    await aging.clock.advance(minutes=1, seconds=1)  # every move ends with a check, whatever the interval

    assert (await fetch(aging.wire, "t", 0)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert aging.partition().log.log_start_offset == 1
    assert aging.files("t-0/*.log.deleted") == ["00000000000000000000.log.deleted"]
    await aging.clock.advance(minutes=1)
    assert aging.files("t-0/*.deleted") == []


async def test_one_long_move_does_all_of_it(aging: Aging) -> None:
    await create(aging.wire, "t", retention_ms="3600000")
    await aging.produce(b"a")
    await aging.clock.advance(hours=2)
    assert aging.partition().log.log_start_offset == 1
    assert aging.files("t-0/*.deleted") == []


async def test_the_files_of_a_deleted_topic_are_removed(aging: Aging) -> None:
    await create(aging.wire, "t", file_delete_delay_ms="60000")
    await aging.wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 4)
    assert len(aging.files("t-0.*-delete")) == 1
    await aging.clock.advance(minutes=1)
    assert aging.files("t-0.*-delete") == []


@pytest.mark.process
async def test_compaction_waits_for_its_lag_and_then_keeps_the_last_value(aging: Aging) -> None:
    configs = {"cleanup_policy": "compact", "segment_ms": "60000", "min_cleanable_dirty_ratio": "0.01"}
    await create(aging.wire, "t", min_compaction_lag_ms="7200000", **configs)
    for value in (b"a", b"b"):
        await aging.produce(value)
    await aging.clock.advance(hours=1)
    await aging.produce(b"c", b"another")  # rolls the segment of `a` and `b`
    assert values_in(await fetch(aging.wire, "t", 0)) == [b"a", b"b"]

    await aging.clock.advance(hours=2)

    assert values_in(await fetch(aging.wire, "t", 0))[0] == b"b"


@pytest.mark.process
async def test_a_tombstone_goes_after_delete_retention_ms(aging: Aging) -> None:
    configs = {"cleanup_policy": "compact", "segment_ms": "60000", "min_cleanable_dirty_ratio": "0.01"}
    await create(aging.wire, "t", delete_retention_ms="86400000", **configs)
    await aging.produce(b"a")
    await aging.produce(None)
    await aging.clock.advance(hours=1)
    await aging.produce(b"c", b"another")
    await aging.clock.advance(hours=1)
    assert values_in(await fetch(aging.wire, "t", 0)) == [None]  # compacted, and kept for consumers

    await aging.clock.advance(days=2)
    await aging.produce(b"d", b"yet another")  # there is something to compact again
    await aging.clock.advance(hours=1)

    assert None not in values_in(await fetch(aging.wire, "t", 0))


async def test_idempotent_producers_expire(aging: Aging) -> None:
    await create(aging.wire, "t")
    producer_id = await new_producer_id(aging.wire)
    await aging.produce(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    await aging.clock.advance(hours=23)
    assert len(aging.partition().log.producers) == 1
    await aging.clock.advance(hours=2)
    assert len(aging.partition().log.producers) == 0


# ------------------------------------------------------------------------------------------------------- coordinators


@pytest.mark.process
async def test_offsets_of_a_group_without_members_expire(aging: Aging) -> None:
    await create(aging.wire, "t")
    await find_coordinator(aging.wire, "g")
    outsider = GroupMember(aging.wire, "g")
    assert await outsider.commit("t", 3) is ErrorCode.NONE
    await aging.clock.advance(days=6)
    assert await outsider.committed("t") == 3
    await aging.clock.advance(days=2)
    assert await outsider.committed("t") == -1


async def test_a_transaction_times_out_and_its_markers_are_written(aging: Aging) -> None:
    await create(aging.wire, "t", retention_ms="-1")  # the batches are of 2023
    producer = ProducingProducer(aging.wire)
    await producer.start(timeout_ms=60_000)
    assert (await producer.produce("t", b"a")).error_code == ErrorCode.NONE
    await aging.clock.advance(seconds=50)
    assert aging.partition().log.last_stable_offset == 0

    await aging.clock.advance(seconds=20)

    assert (await producer.describe()).transaction_state == "CompleteAbort"
    assert (aging.partition().log.last_stable_offset, aging.partition().high_watermark) == (2, 2)


async def beat(wire: Wire, group_id: str, epoch: int) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id="m", member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.topic_partitions = 60_000, []
        request.subscribed_topic_names = ["t"]
    return await wire.ask(request, 1)


@pytest.mark.parametrize("properties", [{"group.consumer.min.heartbeat.interval.ms": "1"}])
async def test_a_silent_member_expires_and_a_living_one_keeps_its_time(aging: Aging) -> None:
    await create(aging.wire, "t")
    await find_coordinator(aging.wire, "living")
    await set_to(aging.wire, GROUP, "silent", consumer_heartbeat_interval_ms="1")
    epochs = {name: (await beat(aging.wire, name, 0)).member_epoch for name in ("silent", "living")}
    joined_at = aging.clock.monotonic()
    while aging.clock.monotonic() - joined_at < 0.01:  # many heartbeats of that group
        await aging.group_state("g")

    await aging.clock.advance(hours=2)

    assert (await beat(aging.wire, "silent", epochs["silent"])).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (await beat(aging.wire, "living", epochs["living"])).error_code == ErrorCode.NONE


async def test_a_parked_join_is_answered_when_the_initial_delay_is_over(tmp_path: Path) -> None:
    clock = MovableClock()
    properties = {
        **PROPERTIES,
        "group.initial.rebalance.delay.ms": "3600000",
        "group.max.session.timeout.ms": "9999999",
    }
    async with (
        Broker(properties, clock=clock) as broker,
        Wire("127.0.0.1", broker.port) as wire,
        Wire("127.0.0.1", broker.port) as other,
    ):
        await create(wire, "t")
        await find_coordinator(wire, "g")
        member = GroupMember(wire, "g")
        joining = asyncio.ensure_future(member.join(rebalance_timeout_ms=7_200_000))
        aging = Aging(broker, other, clock)
        while await aging.group_state("g") != "PreparingRebalance":
            pass

        await clock.advance(minutes=59)
        assert await aging.group_state("g") == "PreparingRebalance"
        await clock.advance(minutes=1)

        assert (await joining).error_code == ErrorCode.NONE
        assert await aging.group_state("g") == "CompletingRebalance"


# ------------------------------------------------------------------------------------------------ requests, connections


async def test_a_delayed_fetch_is_answered(aging: Aging) -> None:
    await create(aging.wire, "t")
    request = fetch_request("t", 0, max_wait_ms=3_600_000)
    await aging.wire.send(request, 12)
    await parked(aging.broker)
    await aging.clock.advance(minutes=59)
    assert len(aging.broker.services.fetch_purgatory) == 1

    await aging.clock.advance(minutes=1)

    assert len(aging.broker.services.fetch_purgatory) == 0
    assert (await aging.wire.receive(request, 12)).error_code == ErrorCode.NONE


# ------------------------------------------------------------------------------------------------------ a whole broker


async def next_values(consumer: Consumer) -> list[bytes | None]:
    while not (records := await consumer.poll()):
        pass
    return [record.value for record in records]


@pytest.mark.parametrize("new_event_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_month_with_a_consumer_that_lives(new_event_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def live() -> None:
        clock = MovableClock()
        async with (
            Broker(PROPERTIES, clock=clock) as broker,
            Producer(broker.bootstrap) as producer,
            Consumer(broker.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer,
        ):
            await producer.send_and_wait("t", b"before")
            await consumer.subscribe(["t"])
            assert await next_values(consumer) == [b"before"]
            generation = consumer.group_metadata()

            await clock.advance(days=30)

            await producer.send_and_wait("t", b"after")
            assert await next_values(consumer) == [b"after"]
            assert consumer.group_metadata() == generation

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(live())
