"""Offsets that transactions commit, in a broker: what shows when, whatever ends, moves, restarts or is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.offsets.committed_offsets import NO_EXPIRY
from odradek.broker.coordinator.offsets.events import CommitOffsetsInTransaction
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.events import PendingReply, ProducerIdAndEpoch
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.protocol.schema import ZERO_UUID
from tests.handlers.busy_threads import busy_disk_threads, busy_writer_threads
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import NOW, create
from tests.wire import Wire

TOPIC = "__consumer_offsets"
P1, P2 = ProducerIdAndEpoch(1, 0), ProducerIdAndEpoch(2, 0)
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
DAY_MS = 24 * 60 * 60 * 1000
LARGE = "m" * 4000
"""The metadata of an offset: 40 of them make a batch that a writer thread appends."""


class Transactions:
    """Commits offsets of the topic `t`, and ends transactions, as the coordinators of a broker do."""

    def __init__(self, broker: Broker, wire: Wire) -> None:
        self.broker = broker
        self.wire = wire

    def submit(
        self, producer: ProducerIdAndEpoch, offsets: dict[int, int], group: str = "g", metadata: str = ""
    ) -> Any:
        """Commit by partition."""
        commits = [
            ("t", index, CommittedOffset(offset, -1, metadata, NOW, NO_EXPIRY, ZERO_UUID, -1))
            for index, offset in offsets.items()
        ]
        rows = [TxnOffsetCommitResponsePartition(index) for index in offsets]
        response = TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic("t", rows)])
        committer = Committer("", None, -1, 3, is_transactional=True)
        event = CommitOffsetsInTransaction(PendingReply(), committer, commits, response, producer)
        return self.broker.services.groups.submit(group, event)

    async def commit(self, producer: ProducerIdAndEpoch, offset: int, group: str = "g") -> ErrorCode:
        """Commit one offset of partition 0."""
        try:
            answer = self.submit(producer, {0: offset}, group)
            response = await answer if isinstance(answer, asyncio.Future) else answer
        except KafkaError as error:
            return error.code
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def marker(self, producer: ProducerIdAndEpoch, *, committed: bool = True, version: int = 1) -> TransactionMarker:
        return TransactionMarker(*producer, committed, coordinator_epoch=0, transaction_version=version)

    async def end(self, producer: ProducerIdAndEpoch, *, committed: bool = True, version: int = 1) -> None:
        """Write the marker; return when it is answered. Raises KafkaError."""
        marker = self.marker(producer, committed=committed, version=version)
        shown = self.broker.services.groups.write_marker(0, marker)
        if shown is not None:
            await shown

    async def read(self, *, stable: bool = False, group: str = "g") -> int | ErrorCode:
        """Fetch the offset of partition 0."""
        topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(group, topics=topics)]
        [row] = (await self.wire.ask(OffsetFetchRequest(groups=groups, require_stable=stable), 8)).groups
        if row.error_code:
            return ErrorCode(row.error_code)
        [partition] = row.topics[0].partitions
        return ErrorCode(partition.error_code) if partition.error_code else partition.committed_offset

    async def until(self, *outcomes: int | ErrorCode) -> None:
        """Read the offset until that has one of these outcomes."""
        while await self.read() not in outcomes:
            pass


Start = Callable[[], AbstractAsyncContextManager[Transactions]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def start(tmp_path: Path, clock: ManualClock) -> Start:
    """Start a broker on the same log directory, with the group `g` and the topic `t`."""

    @asynccontextmanager
    async def started() -> AsyncIterator[Transactions]:
        properties = {"log.dirs": str(tmp_path / "log"), "offsets.topic.num.partitions": "1"}
        async with Broker(properties, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
            await find_coordinator(wire, "g")
            if "t" not in broker.services.metadata.image.topics:
                await create(wire, "t", partitions=50)
            yield Transactions(broker, wire)

    return started


@pytest.fixture
async def transactions(start: Start) -> AsyncIterator[Transactions]:
    async with start() as transactions:
        yield transactions


@pytest.mark.parametrize(("committed", "offset"), [(True, 5), (False, 3)])
async def test_an_offset_shows_when_the_transaction_is_committed(start: Start, committed: bool, offset: int) -> None:
    async with start() as transactions:
        member = GroupMember(transactions.wire, "g")
        assert await member.commit("t", 3) == ErrorCode.NONE
        assert await transactions.commit(P1, 5) == ErrorCode.NONE
        assert (await transactions.read(), await transactions.read(stable=True)) == (3, UNSTABLE)

    async with start() as transactions:
        assert (await transactions.read(), await transactions.read(stable=True)) == (3, UNSTABLE)
        await transactions.end(P1, committed=committed)
        assert (await transactions.read(), await transactions.read(stable=True)) == (offset, offset)

    async with start() as transactions:
        assert await transactions.read(stable=True) == offset


async def test_a_marker_is_answered_when_its_offsets_show(transactions: Transactions) -> None:
    groups = transactions.broker.services.groups
    async with busy_writer_threads(transactions.broker):
        large = transactions.submit(P1, dict.fromkeys(range(40), 7), metadata=LARGE)
        small = transactions.submit(P2, {0: 8}, "h")
        shown = groups.write_marker(0, transactions.marker(P1))
        assert shown is not None
        assert not shown.done()
        assert await transactions.read() == -1

    await asyncio.gather(large, small)
    await shown

    assert await transactions.read(stable=True) == 7
    assert await transactions.read(stable=True, group="h") == UNSTABLE


async def test_a_marker_waits_for_the_replicas_and_the_offsets_with_it(transactions: Transactions) -> None:
    epoch = transactions.broker.services.metadata.broker_epoch
    await transactions.commit(P1, 5)
    publish(transactions.broker, TOPIC, isr={SELF: epoch, OTHER: 9})
    shown = transactions.broker.services.groups.write_marker(0, transactions.marker(P1))
    assert shown is not None
    assert await transactions.read(stable=True) == UNSTABLE

    publish(transactions.broker, TOPIC, isr={SELF: epoch})
    await shown

    assert await transactions.read(stable=True) == 5


async def test_a_marker_is_refused_while_the_partition_moves_or_loads_and_then_written(
    transactions: Transactions,
) -> None:
    await transactions.commit(P1, 5)
    publish(transactions.broker, TOPIC, leader=OTHER)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await transactions.end(P1)
    async with busy_disk_threads(transactions.broker):
        publish(transactions.broker, TOPIC, leader=SELF)
        await transactions.until(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            await transactions.end(P1)
    await transactions.until(-1)
    assert await transactions.read(stable=True) == UNSTABLE

    await transactions.end(P1)

    assert await transactions.read(stable=True) == 5


async def test_an_offset_whose_append_fails_is_not_pending(transactions: Transactions) -> None:
    metadata = "m" * 40_000  # more than a batch may have in 50 records
    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
        await transactions.submit(P1, dict.fromkeys(range(50), 7), metadata=metadata)

    assert await transactions.read(stable=True) == -1
    assert await transactions.commit(P1, 5) == ErrorCode.NONE


# ----------------------------------------------------------------------------------------------------- delayed requests


@pytest.mark.parametrize("committed", [True, False])
async def test_a_delayed_commit_of_a_fenced_producer_does_not_touch_the_next_transaction(
    transactions: Transactions, committed: bool
) -> None:
    fenced, fencing = P1, P1._replace(producer_epoch=1)
    assert await transactions.commit(fenced, 5) == ErrorCode.NONE
    await transactions.end(fencing, committed=False)

    assert await transactions.commit(fenced, 6) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await transactions.read(stable=True) == -1
    assert await transactions.commit(fencing, 7) == ErrorCode.NONE
    assert await transactions.commit(fenced, 8) == ErrorCode.INVALID_PRODUCER_EPOCH
    await transactions.end(fencing, committed=committed)

    assert await transactions.read(stable=True) == (7 if committed else -1)


async def test_a_delayed_commit_and_marker_of_version_2_do_not_touch_the_next_transaction(
    transactions: Transactions,
) -> None:
    second = P1._replace(producer_epoch=1)
    third = P1._replace(producer_epoch=2)
    await transactions.commit(P1, 5)
    await transactions.end(second, version=2)
    await transactions.commit(second, 6)

    assert await transactions.commit(P1, 99) == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        await transactions.end(second, committed=False, version=2)  # sent again
    assert (await transactions.read(), await transactions.read(stable=True)) == (5, UNSTABLE)
    await transactions.end(third, version=2)

    assert await transactions.read(stable=True) == 6


async def test_a_marker_that_is_sent_again_changes_nothing(transactions: Transactions) -> None:
    await transactions.commit(P1, 5)
    await transactions.end(P1)
    await GroupMember(transactions.wire, "g").commit("t", 6)

    await transactions.end(P1)

    assert await transactions.read(stable=True) == 6


# ------------------------------------------------------------------------------------------------ deletion, conversion


async def test_a_deleted_group_loses_its_pending_offsets(start: Start) -> None:
    async with start() as transactions:
        await transactions.commit(P1, 5)
        [result] = (await transactions.wire.ask(DeleteGroupsRequest(["g"]), 2)).results
        assert result.error_code == ErrorCode.NONE
        assert await transactions.read(stable=True) == -1

        await transactions.end(P1)
        assert await transactions.read(stable=True) == -1
        assert transactions.broker.services.groups.shard_of("g").groups == {}

    async with start() as transactions:
        assert await transactions.read(stable=True) == -1
        assert transactions.broker.services.groups.shard_of("g").groups == {}


async def test_an_offset_that_is_deleted_is_no_longer_pending(transactions: Transactions) -> None:
    await transactions.commit(P1, 5)
    request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])])
    assert (await transactions.wire.ask(request, 0)).error_code == ErrorCode.NONE
    assert await transactions.read(stable=True) == -1

    await transactions.end(P1)

    assert await transactions.read(stable=True) == -1


async def test_the_pending_offsets_of_a_deleted_topic_do_not_come_back(transactions: Transactions) -> None:
    await transactions.commit(P1, 5)
    await transactions.wire.ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    await transactions.end(P1)

    await create(transactions.wire, "t")

    assert await transactions.read() == -1


async def test_pending_offsets_keep_the_group_and_the_offset_that_they_replace(
    transactions: Transactions, clock: ManualClock
) -> None:
    groups = transactions.broker.services.groups
    await GroupMember(transactions.wire, "g").commit("t", 3)
    await transactions.commit(P1, 5)
    await transactions.commit(P2, 5, "h")
    clock.advance(8 * DAY_MS)

    await groups.expire()
    assert await transactions.read() == 3
    assert set(groups.shard_of("g").groups) == {"g", "h"}
    await transactions.end(P1, committed=False)
    await transactions.end(P2, committed=False)
    await groups.expire()

    assert await transactions.read() == -1
    assert groups.shard_of("g").groups == {}


async def test_pending_offsets_stay_when_the_group_gets_another_type(transactions: Transactions) -> None:
    await transactions.commit(P1, 5)
    joining = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert (await transactions.wire.ask(joining, 1)).error_code == ErrorCode.NONE
    assert await transactions.read(stable=True) == UNSTABLE

    await transactions.end(P1)

    assert await transactions.read(stable=True) == 5
