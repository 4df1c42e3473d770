"""The coordinator in a broker: groups when the broker stops, partitions move, topics are deleted and time passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import RequestHeader, encode_request
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.handlers.busy_threads import busy_disk_threads
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import NOW, create
from tests.wire import Wire

DAY_MS = 24 * 60 * 60 * 1000

Start = Callable[[], AbstractAsyncContextManager[tuple[Broker, Wire]]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def properties() -> Mapping[str, str]:
    """Properties of the broker besides those that all tests need."""
    return {}


@pytest.fixture
def start(tmp_path: Path, clock: ManualClock, properties: Mapping[str, str]) -> Start:
    """Start a broker on the same log directory, with a connection to it and groups in one partition."""

    @asynccontextmanager
    async def started() -> AsyncIterator[tuple[Broker, Wire]]:
        base = {"log.dirs": str(tmp_path / "log"), "offsets.topic.num.partitions": "1"}
        async with Broker(base | dict(properties), clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
            await find_coordinator(wire, "g")
            yield broker, wire

    return started


@pytest.fixture
async def running(start: Start) -> AsyncIterator[tuple[Broker, Wire]]:
    async with start() as broker_and_wire:
        yield broker_and_wire


async def a_member(wire: Wire) -> GroupMember:
    """The only member of the group `g`, which has committed offset 3 of the topic `t`."""
    await create(wire, "t")
    member = GroupMember(wire, "g")
    await member.become_only_member()
    assert await member.commit("t", 3) == ErrorCode.NONE
    return member


async def groups_of(wire: Wire) -> set[str]:
    return {group.group_id for group in (await wire.ask(ListGroupsRequest(), 4)).groups}


async def test_a_member_stays_in_its_group_after_a_restart_of_the_broker(start: Start) -> None:
    async with start() as (_, wire):
        member = await a_member(wire)

    async with start() as (_, wire):
        member.wire = wire
        assert await member.heartbeat() == ErrorCode.NONE
        assert (await member.sync()).assignment == b"all"
        assert await member.committed("t") == 3
        assert await member.commit("t", 4) == ErrorCode.NONE


@pytest.mark.process
async def test_offsets_expire_a_week_after_the_last_member_left(start: Start, clock: ManualClock) -> None:
    async with start() as (broker, wire):
        member = await a_member(wire)
        clock.advance(8 * DAY_MS)
        await member.heartbeat()
        await broker.services.groups.expire()
        assert await member.committed("t") == 3  # the group has a member
        await member.leave()

        clock.advance(7 * DAY_MS - 1)
        await broker.services.groups.expire()
        assert await member.committed("t") == 3
        clock.advance(1)
        await broker.services.groups.expire()

        assert await member.committed("t") == -1
        assert await groups_of(wire) == set()

    async with start() as (_, wire):
        assert await groups_of(wire) == set()


async def test_offsets_of_a_group_without_members_expire_a_week_after_the_commit(
    running: tuple[Broker, Wire], clock: ManualClock
) -> None:
    broker, wire = running
    await create(wire, "t")
    outsider = GroupMember(wire, "tool")
    await outsider.commit("t", 3)
    clock.advance(7 * DAY_MS)
    await outsider.commit("t", 4)
    await broker.services.groups.expire()
    assert await outsider.committed("t") == 4

    clock.advance(7 * DAY_MS)
    await broker.services.groups.expire()

    assert await outsider.committed("t") == -1
    assert await groups_of(wire) == set()


async def test_a_commit_may_have_a_time_of_expiry(running: tuple[Broker, Wire], clock: ManualClock) -> None:
    broker, wire = running
    await create(wire, "t")
    outsider = GroupMember(wire, "old")
    await outsider.commit("t", 3, 4, retention_time_ms=1000)
    clock.advance(999)
    await broker.services.groups.expire()
    assert await outsider.committed("t") == 3

    clock.advance(1)
    await broker.services.groups.expire()

    assert await outsider.committed("t") == -1


async def test_the_offsets_of_a_deleted_topic_are_deleted(start: Start) -> None:
    async with start() as (_, wire):
        member = await a_member(wire)
        await create(wire, "other")
        await member.commit("other", 5)
        await wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)

        assert [topic.name for topic in (await member.fetch()).topics] == ["other"]

    async with start() as (_, wire):
        member.wire = wire
        assert [topic.name for topic in (await member.fetch()).topics] == ["other"]


async def test_requests_for_a_group_that_has_moved_are_answered_not_coordinator(running: tuple[Broker, Wire]) -> None:
    broker, wire = running
    member = await a_member(wire)
    async with Wire("127.0.0.1", broker.port) as other_wire:
        newcomer = GroupMember(other_wire, "g")
        joining = asyncio.create_task(newcomer.join())
        await member.until_rebalance()

        publish(broker, "__consumer_offsets", leader=OTHER)

        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
    assert await member.heartbeat() == ErrorCode.NOT_COORDINATOR
    assert await member.commit("t", 4) == ErrorCode.NOT_COORDINATOR
    assert (await member.fetch()).error_code == ErrorCode.NOT_COORDINATOR
    found = await wire.ask(FindCoordinatorRequest(key="g"), 3)
    assert (found.node_id, found.host) == (OTHER, "other")


async def test_a_group_that_comes_back_is_loaded_again(running: tuple[Broker, Wire]) -> None:
    broker, wire = running
    member = await a_member(wire)
    publish(broker, "__consumer_offsets", leader=OTHER)
    async with busy_disk_threads(broker):
        publish(broker, "__consumer_offsets", leader=SELF)
        while (code := await member.commit("t", 4)) == ErrorCode.NOT_COORDINATOR:
            pass  # the partition has not got the image with its new leader yet

        assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await member.heartbeat() == ErrorCode.NONE  # as in Kafka, while the group is loading
        assert (await wire.ask(ListGroupsRequest(), 4)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    while (code := await member.commit("t", 4)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass
    assert code == ErrorCode.NONE
    assert (await member.sync()).assignment == b"all"


async def test_the_load_of_a_group_that_moves_meanwhile_is_discarded(running: tuple[Broker, Wire]) -> None:
    broker, wire = running
    member = await a_member(wire)
    publish(broker, "__consumer_offsets", leader=OTHER)
    async with busy_disk_threads(broker):
        publish(broker, "__consumer_offsets", leader=SELF)
        while await member.commit("t", 4) != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass  # the partition has not got the image with its new leader yet

        publish(broker, "__consumer_offsets", leader=OTHER)

        assert await member.commit("t", 4) == ErrorCode.NOT_COORDINATOR


async def test_a_partition_that_cannot_be_loaded_does_not_stop_the_broker(
    running: tuple[Broker, Wire], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker, wire = running
    member = await a_member(wire)
    publish(broker, "__consumer_offsets", leader=OTHER)

    def fail(*_: object) -> int:
        raise ZeroDivisionError("a defect in a state machine")

    with monkeypatch.context() as patched:
        patched.setattr("odradek.broker.coordinator.runtime.runtime.load", fail)
        publish(broker, "__consumer_offsets", leader=SELF)
        while "coordinator not loaded" not in caplog.text:
            assert await member.commit("t", 4) != ErrorCode.NONE
    assert await member.commit("t", 4) == ErrorCode.NOT_COORDINATOR

    publish(broker, "__consumer_offsets", leader=SELF)  # in another epoch
    while (code := await member.commit("t", 4)) != ErrorCode.NONE:
        assert code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


async def test_there_is_no_coordinator_if_the_topic_cannot_be_created(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {"log.dirs": str(tmp_path / "log"), "offsets.topic.num.partitions": "10001"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        found = await wire.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)

        [coordinator] = found.coordinators
        assert (coordinator.error_code, coordinator.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        assert "Excessively large number of partitions" in coordinator.error_message
    assert "topic not created" in caplog.text


async def test_a_commit_is_answered_when_all_in_sync_replicas_have_it(running: tuple[Broker, Wire]) -> None:
    broker, wire = running
    member = await a_member(wire)
    epoch = broker.services.metadata.broker_epoch
    publish(broker, "__consumer_offsets", isr={SELF: epoch, OTHER: 9})
    committing = asyncio.create_task(member.commit("t", 4))
    async with Wire("127.0.0.1", broker.port) as other_wire:
        assert await GroupMember(other_wire, "g").committed("t") == 3
        assert not committing.done()

        publish(broker, "__consumer_offsets", isr={SELF: epoch})

        assert await committing == ErrorCode.NONE
        assert await GroupMember(other_wire, "g").committed("t") == 4


@pytest.mark.parametrize("properties", [{"offsets.commit.timeout.ms": "1"}])
async def test_a_commit_does_not_wait_for_replicas_for_ever(running: tuple[Broker, Wire]) -> None:
    broker, wire = running
    member = await a_member(wire)
    publish(broker, "__consumer_offsets", isr={SELF: broker.services.metadata.broker_epoch, OTHER: 9})

    assert await member.commit("t", 4) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await member.committed("t") == 3
    assert await member.commit("t", 5) == ErrorCode.COORDINATOR_NOT_AVAILABLE, "behind the first one"

    publish(broker, "__consumer_offsets", isr={SELF: broker.services.metadata.broker_epoch})

    while (offset := await member.committed("t")) == 3:
        pass
    assert offset == 4, "it is in the log, and committed now"
    assert await member.commit("t", 6) == ErrorCode.NONE


async def test_an_assignment_that_is_written_on_a_thread_delays_its_group_alone(
    running: tuple[Broker, Wire],
) -> None:
    broker, wire = running
    await create(wire, "t")
    member = GroupMember(wire, "g")
    await member.join()
    large = b"x" * 200_000
    rows = [SyncGroupRequestAssignment(member.member_id, large)]
    await wire.send(SyncGroupRequest("g", member.generation_id, member.member_id, assignments=rows), 3)

    async with Wire("127.0.0.1", broker.port) as other_wire:
        assert await GroupMember(other_wire, "tool").commit("t", 1) == ErrorCode.NONE
        member.wire = other_wire
        assert await member.heartbeat() == ErrorCode.NONE
        assert await member.commit("t", 1) == ErrorCode.NONE

    assert (await wire.receive(SyncGroupRequest(), 3)).assignment == large


@pytest.mark.parametrize("properties", [{"socket.request.without.records.max.bytes": "2000000"}])
async def test_an_assignment_that_no_batch_can_hold_is_refused(running: tuple[Broker, Wire]) -> None:
    _, wire = running
    member = GroupMember(wire, "g")
    await member.join()

    synced = await member.sync({member.member_id: b"x" * 1_100_000})

    assert synced.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


async def test_an_id_that_no_record_can_hold_is_refused(running: tuple[Broker, Wire]) -> None:
    _, wire = running
    await create(wire, "t")
    topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])]
    request = OffsetCommitRequest("i" * 20_000, topics=topics)
    frame = encode_request(RequestHeader(8, 7, 1, "wire"), request)
    # Bytes that are not UTF-8 become U+FFFD, which takes three bytes in the record's key.
    frame = frame.replace(b"i" * 20_000, b"\xff" * 20_000)
    wire.writer.write(SIZE_PREFIX.pack(len(frame)) + frame)

    [topic] = (await wire.receive(request, 7)).topics

    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_parked_request_is_answered_when_the_broker_stops(start: Start) -> None:
    async with start() as (broker, wire):
        member = await a_member(wire)
        other_wire = await Wire("127.0.0.1", broker.port).__aenter__()
        joining = asyncio.create_task(GroupMember(other_wire, "g").join())
        await member.until_rebalance()

    assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
    await other_wire.__aexit__(None, None, None)
