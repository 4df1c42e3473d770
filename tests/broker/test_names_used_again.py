"""A topic, group or user is deleted and made again under its name: what is stored under names is not that of the older.

`docs/durability.md` has the table; logs and their checkpoints are tested in `tests/storage/test_names_made_again.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import delete_topic
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import NOW, batch, create, fetch, new_producer_id, produce, values_in
from tests.handlers.transactional_batches import ProducingProducer
from tests.wire import Wire

CONTROL_BATCH = 1
"""The offsets that the marker of a transaction takes."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def broker(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Broker]:
    properties = {
        "log.dirs": str(tmp_path),
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    async with Broker(properties, clock=clock) as running:
        yield running


@pytest.fixture
async def wire(broker: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", broker.port) as opened:
        yield opened


async def make_again(broker: Broker, wire: Wire, **configs: str) -> None:
    await delete_topic(broker.services.metadata, name="t")
    await create(wire, "t", **configs)


def directories_set_aside(log_dir: Path) -> int:
    return len(list(log_dir.glob("t-0.*-stray")))


async def test_properties_of_a_topic(broker: Broker, wire: Wire) -> None:
    """Throttled replicas are such properties, too."""
    await create(wire, "t", retention_ms="1", follower_replication_throttled_replicas="*")
    await make_again(broker, wire)
    assert broker.services.metadata.image.topics["t"].configs == {}
    assert broker.services.partitions.get("t", 0).log.config.retention_ms != 1


async def test_producers_and_their_sequences(broker: Broker, wire: Wire) -> None:
    producer_id = await new_producer_id(wire)
    await create(wire, "t")
    fields = {"producer_id": producer_id, "producer_epoch": 3}
    assert (await produce(wire, "t", batch(b"a", base_sequence=0, **fields))).error_code == ErrorCode.NONE
    await make_again(broker, wire)

    row = await produce(wire, "t", batch(b"b", base_sequence=0, producer_id=producer_id, producer_epoch=1))

    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 0)
    assert values_in(await fetch(wire, "t")) == [b"b"]


async def test_an_open_transaction_gives_the_next_topic_at_most_its_marker(broker: Broker, wire: Wire) -> None:
    """The coordinator knows partitions by name, as Kafka's does; the marker ends nothing in the next topic."""
    await create(wire, "t")
    producer = ProducingProducer(wire, is_new=False)
    await producer.start()
    await producer.add_partition("t", 0)
    response = await wire.ask(producer.request(("t", 0, producer.batch(b"old"))), 9)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    await make_again(broker, wire)

    assert await producer.end(commit=True, version=3) == ErrorCode.NONE
    assert (await produce(wire, "t", batch(b"new"))).error_code == ErrorCode.NONE

    row = await fetch(wire, "t", isolation_level=1)
    assert [value for value in values_in(row) if value == b"new"] == [b"new"]
    assert b"old" not in values_in(row)
    log = broker.services.partitions.get("t", 0).log
    assert log.log_end_offset <= CONTROL_BATCH + 1
    assert log.last_stable_offset == log.log_end_offset
    assert row.aborted_transactions in (None, [])


async def test_a_log_whose_topic_id_was_lost(tmp_path: Path) -> None:
    """The power fails after the deletion is decided and before it is done, and takes what was not synced: the id."""
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"old"))
        broker.log_dirs.refuse_all()
        await wire.ask(DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=1), 6)
        await broker.services.metadata.wait_for_revision(broker.services.metadata.image.revision)
        assert "t" not in broker.services.metadata.image.topics
        await broker.kill()
    (tmp_path / "t-0" / "partition.metadata").unlink()

    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")

        assert values_in(await fetch(wire, "t")) == []
        assert directories_set_aside(tmp_path) == 1


async def test_counters_of_the_metrics(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    assert broker.services.partitions.get("t", 0).metrics.messages_in == 1
    await make_again(broker, wire)
    assert broker.services.partitions.get("t", 0).metrics.messages_in == 0


async def test_the_age_of_what_a_group_reads_next(broker: Broker, wire: Wire, clock: ManualClock) -> None:
    group, stamped = GroupMember(wire, "g"), {"message_timestamp_type": "LogAppendTime"}
    await create(wire, "t", **stamped)
    await find_coordinator(wire, "g")
    await produce(wire, "t", batch(b"a"))
    await group.commit("t", 0)
    clock.advance(30_000)
    await broker.group_lag.refresh()
    assert broker.group_lag.seconds("g", "t", 0) == 30
    await make_again(broker, wire, **stamped)
    await produce(wire, "t", batch(b"b"))
    await group.commit("t", 0)

    await broker.group_lag.refresh()

    assert broker.group_lag.seconds("g", "t", 0) == 0


async def test_generation_and_offsets_of_a_group(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await find_coordinator(wire, "g")
    member = GroupMember(wire, "g")
    await member.become_only_member()
    await member.commit("t", 90)
    await member.leave()
    deleted = await wire.ask(DeleteGroupsRequest(["g"]), 2)
    assert [each.error_code for each in deleted.results] == [ErrorCode.NONE]

    again = GroupMember(wire, "g")
    await again.become_only_member()

    assert again.generation_id == 1
    assert await again.committed("t") == -1
