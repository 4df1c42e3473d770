"""A restore against a cold start on a copy of the log directory, and against what was seen before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.snapshots import Snapshots
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.quotas import describe, set_quota
from tests.handlers.requests import (
    batch,
    create,
    fetch,
    fetch_request,
    new_producer_id,
    parked,
    produce,
    produce_request,
    values_in,
)
from tests.testing.snapshots.changes import (
    CHANGES,
    LARGE,
    PROPERTIES,
    SMALL,
    a_committed_transaction,
    commits,
    fill,
    prepare,
    recreation,
    rolled_segments,
)
from tests.testing.snapshots.observed import cold_start, copied, observed, until_loaded
from tests.wire import Wire


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(PROPERTIES) as started:
        yield started


@pytest.fixture
def snapshots(broker: Broker) -> Snapshots:
    return Snapshots(broker)


@pytest.fixture
async def wire(broker: Broker) -> AsyncIterator[Wire]:
    """A connection for what comes before a restore, which closes it."""
    async with Wire("127.0.0.1", broker.port) as connected:
        yield connected


@pytest.mark.parametrize("change", CHANGES)
async def test_a_restore_is_a_cold_start_on_a_copy(
    broker: Broker, snapshots: Snapshots, wire: Wire, tmp_path: Path, change: Any
) -> None:
    await prepare(wire)
    state = await snapshots.snapshot()
    copy = copied(broker, tmp_path / "copy")
    before = await observed(broker)
    port = broker.port
    await change(broker, wire)

    await snapshots.restore(state)

    after = await observed(broker)
    assert after == before
    assert broker.port == port
    assert await cold_start(broker, copy, PROPERTIES) == after
    async with Wire("127.0.0.1", port) as again:  # and from here on it is a broker like any other
        assert (await produce(again, "t", batch(b"after"))).base_offset == before["logs"]["t-0"]["end"]
        await change(broker, again)
    await snapshots.restore(state)
    assert await observed(broker) == before


async def test_a_stop_after_a_restore_leaves_the_restored_state(tmp_path: Path) -> None:
    properties = {**PROPERTIES, "log.dirs": str(tmp_path / "log")}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        snapshots = Snapshots(broker)
        await prepare(wire)
        state = await snapshots.snapshot()
        await rolled_segments(broker, wire)
        await recreation(broker, wire)
        await a_committed_transaction(broker, wire)
        await snapshots.restore(state)
        before = await observed(broker)

    async with Broker(properties) as broker:
        await until_loaded(broker)
        assert await observed(broker) == before


async def test_several_snapshots_are_restored_in_any_order(broker: Broker, snapshots: Snapshots, wire: Wire) -> None:
    await create(wire, "t", 1, **SMALL)
    states, seen = [], []
    for number in range(4):
        states.append(await snapshots.snapshot())
        seen.append(await observed(broker))
        await fill(wire, "t", 1 + number, b"%d" % number)
        if number == 1:
            await fill(wire, "t", 3)
        if number == 2:
            await fill(wire, "t", 1, b"w" * 300_000)

    for number in (3, 1, 2, 0, 3, 3, 0, 2, 1):
        await snapshots.restore(states[number])
        assert await observed(broker) == seen[number], number
        async with Wire("127.0.0.1", broker.port) as again:
            await fill(again, "t", 2, b"between")
            await fill(again, "t", number, LARGE)


async def test_a_discarded_snapshot_cannot_be_restored(broker: Broker, snapshots: Snapshots, wire: Wire) -> None:
    await create(wire, "t")
    first, second = await snapshots.snapshot(), await snapshots.snapshot()
    before = await observed(broker)
    first.discard()
    await fill(wire, "t", 1)

    with pytest.raises(ValueError, match="was discarded"):
        await snapshots.restore(first)
    await snapshots.restore(second)

    assert await observed(broker) == before
    assert not first.directories[0].exists()


async def test_a_snapshot_of_another_broker_is_refused(broker: Broker, snapshots: Snapshots) -> None:
    async with Broker(PROPERTIES) as other:
        with pytest.raises(ValueError, match="another broker"):
            await snapshots.restore(await Snapshots(other).snapshot())


async def test_the_files_are_removed_with_the_last_reference(broker: Broker) -> None:
    snapshots = Snapshots(broker)
    root = (await snapshots.snapshot()).directories[0].parent
    assert root.parent == broker.log_dir.path.parent
    assert root.exists()

    del snapshots

    assert not root.exists()


async def test_connections_are_closed_and_waiting_requests_discarded(
    broker: Broker, snapshots: Snapshots, wire: Wire
) -> None:
    await create(wire, "t")
    state = await snapshots.snapshot()
    async with Wire("127.0.0.1", broker.port) as waiting:
        await waiting.send(fetch_request("t", max_wait_ms=60_000), 12)
        await parked(broker)

        await snapshots.restore(state)

        assert await waiting.is_closed_by_peer()
        assert await wire.is_closed_by_peer()
        assert len(broker.services.fetch_purgatory) == 0


async def test_a_connection_that_is_opened_during_a_restore_is_served_after_it(
    broker: Broker, snapshots: Snapshots, wire: Wire
) -> None:
    await create(wire, "t")
    await fill(wire, "t", 1, b"before")
    state = await snapshots.snapshot()
    await fill(wire, "t", 1, b"after")

    restoring = asyncio.create_task(snapshots.restore(state))
    while not await asyncio.sleep(0, len(broker.connections) == 0):
        pass
    async with Wire("127.0.0.1", broker.port) as early:
        assert values_in(await fetch(early, "t")) == [b"before"]
    await restoring


async def test_large_appends_under_way_end_before_a_restore(broker: Broker, snapshots: Snapshots, wire: Wire) -> None:
    await create(wire, "t")
    state = await snapshots.snapshot()
    for _ in range(5):
        await wire.send(produce_request("t", batch(LARGE)), 9)
    while broker.services.partitions.get("t", 0).log.log_end_offset == 0:  # noqa: ASYNC110 - a turn of the loop
        await asyncio.sleep(0)

    await snapshots.restore(state)

    assert broker.services.partitions.get("t", 0).log.log_end_offset == 0
    async with Wire("127.0.0.1", broker.port) as again:
        assert (await produce(again, "t", batch(b"a"))).base_offset == 0


async def test_a_snapshot_during_large_appends_ends_at_a_batch(
    broker: Broker, snapshots: Snapshots, wire: Wire
) -> None:
    await create(wire, "t")
    for _ in range(8):
        await wire.send(produce_request("t", batch(LARGE, LARGE)), 9)
    while broker.services.partitions.get("t", 0).log.log_end_offset == 0:  # noqa: ASYNC110 - a turn of the loop
        await asyncio.sleep(0)

    state = await snapshots.snapshot()

    end = state.partitions["t", 0].state.log_end_offset
    assert end % 2 == 0
    await snapshots.restore(state)
    assert broker.services.partitions.get("t", 0).log.log_end_offset == end
    async with Wire("127.0.0.1", broker.port) as again:
        assert values_in(await fetch(again, "t", end - 1, partition_max_bytes=1 << 24)) == [LARGE, LARGE]


async def test_a_living_idempotent_producer_goes_on(broker: Broker, snapshots: Snapshots, wire: Wire) -> None:
    await create(wire, "t", 2)
    producer_id = await new_producer_id(wire)
    fields = {"producer_id": producer_id, "producer_epoch": 0}
    await produce(wire, "t", batch(b"a", base_sequence=0, **fields))
    await produce(wire, "t", batch(b"a", base_sequence=0, **fields), 1)
    state = await snapshots.snapshot()
    await produce(wire, "t", batch(b"b", base_sequence=1, **fields))

    await snapshots.restore(state)

    async with Wire("127.0.0.1", broker.port) as again:
        row = await produce(again, "t", batch(b"c", base_sequence=2, **fields))
        assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 1)
        row = await produce(again, "t", batch(b"e", base_sequence=4, **fields))
        assert row.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        row = await produce(again, "t", batch(b"f", base_sequence=5, **fields), 1)  # nothing had changed there
        assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 1)


async def test_producer_ids_are_never_given_out_again(broker: Broker, snapshots: Snapshots, wire: Wire) -> None:
    state = await snapshots.snapshot()
    given = {await new_producer_id(wire) for _ in range(3)}

    for _ in range(2):
        await snapshots.restore(state)
        async with Wire("127.0.0.1", broker.port) as again:
            new = await new_producer_id(again)
        assert new not in given
        given.add(new)


async def test_an_open_transaction_is_open_again(broker: Broker, snapshots: Snapshots, wire: Wire) -> None:
    producer = await prepare(wire)
    state = await snapshots.snapshot()
    stable = broker.services.partitions.get("t", 1).readable_end_offset(read_committed=True)
    await producer.finish(commit=True)
    assert broker.services.partitions.get("t", 1).readable_end_offset(read_committed=True) > stable
    then = producer.producer_id, producer.epoch

    await snapshots.restore(state)

    partition = broker.services.partitions.get("t", 1)
    assert partition.readable_end_offset(read_committed=True) == stable
    async with Wire("127.0.0.1", broker.port) as again:
        producer.wire = again
        producer.epoch -= 1  # as it was
        assert (await producer.produce("t", b"more", index=1, sequence=1)).error_code == ErrorCode.NONE
        await producer.finish(commit=True)
        assert (producer.producer_id, producer.epoch) == then
        assert partition.log.log_end_offset == broker.services.partitions.get("t", 1).log.log_end_offset
        while (end := partition.readable_end_offset(read_committed=True)) == stable:
            await again.ask(AlterConfigsRequest(), 2)
        assert end == partition.log.log_end_offset


async def test_members_of_before_go_on_and_later_ones_join_again(
    broker: Broker, snapshots: Snapshots, wire: Wire
) -> None:
    await create(wire, "t")
    await find_coordinator(wire, "g")
    member = GroupMember(wire, "g")
    await member.become_only_member()
    later = GroupMember(wire, "h")
    state = await snapshots.snapshot()
    await later.become_only_member()

    await snapshots.restore(state)

    async with Wire("127.0.0.1", broker.port) as again:
        member.wire = later.wire = again
        assert await member.heartbeat() is ErrorCode.NONE
        assert await later.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
        later.member_id = ""
        await later.become_only_member()


async def test_groups_of_after_a_snapshot_are_gone_with_their_topic(
    broker: Broker, snapshots: Snapshots, wire: Wire
) -> None:
    await create(wire, "t")
    state = await snapshots.snapshot()
    await commits(broker, wire)
    assert "__consumer_offsets" in broker.services.metadata.image.topics

    await snapshots.restore(state)

    assert list(broker.services.metadata.image.topics) == ["t"]
    async with Wire("127.0.0.1", broker.port) as again:
        await find_coordinator(again, "g")
        assert await GroupMember(again, "g").committed("t") == -1


async def test_a_broker_that_was_started_again_returns_to_a_snapshots_files(tmp_path: Path) -> None:
    path = tmp_path / "log"
    async with Broker({**PROPERTIES, "log.dirs": str(path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await prepare(wire)
        state = await Snapshots(broker).snapshot()
        before = await observed(broker)
        await recreation(broker, wire)
        given = await new_producer_id(wire)
        with pytest.raises(Exception, match="a broker is using"):
            state.copy_to(path)

    state.copy_to(path)

    async with Broker({**PROPERTIES, "log.dirs": str(path)}) as broker:
        await until_loaded(broker)
        assert await observed(broker) == before
        async with Wire("127.0.0.1", broker.port) as wire:
            assert await new_producer_id(wire) > given


async def test_snapshots_of_two_log_directories(tmp_path: Path) -> None:
    properties = {**PROPERTIES, "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        snapshots = Snapshots(broker)
        await prepare(wire)
        state = await snapshots.snapshot()
        before = await observed(broker)
        await recreation(broker, wire)

        await snapshots.restore(state)

        assert await observed(broker) == before
        with pytest.raises(ValueError, match="name as many directories"):
            state.copy_to(tmp_path / "c")


async def test_a_failed_broker_is_refused_with_what_to_do(broker: Broker, snapshots: Snapshots) -> None:
    state = await snapshots.snapshot()
    broker.failed.set()

    with pytest.raises(RuntimeError, match="copy_to"):
        await snapshots.restore(state)


async def test_client_quotas_come_back_and_what_clients_used_does_not(
    broker: Broker, snapshots: Snapshots, wire: Wire
) -> None:
    await create(wire, "t")
    quota: list[tuple[str, str | None]] = [("user", "ANONYMOUS")]
    await set_quota(wire, quota, ("producer_byte_rate", 1000.0))
    state = await snapshots.snapshot()
    await set_quota(wire, quota, ("producer_byte_rate", 500.0), ("consumer_byte_rate", 1.0))
    response = await wire.ask(produce_request("t", batch(b"x" * 9000)), 9)
    assert response.throttle_time_ms > 0

    await snapshots.restore(state)

    async with Wire("127.0.0.1", broker.port) as again:
        (entry,) = (await again.ask(describe(), 1)).entries
        assert [(value.key, value.value) for value in entry.values] == [("producer_byte_rate", 1000.0)]
        response = await again.ask(produce_request("t", batch(b"x" * 9000)), 9)
        assert response.throttle_time_ms == 0
