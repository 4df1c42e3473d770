"""A request that names the same group, id or partition again and again is answered once for each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_producers import TopicRequest as ProducersOf
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.schema import ZERO_UUID
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import batch, create, produce, values_in
from tests.handlers.secured import FEW_LOGS, coordinate
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire


@pytest.fixture
async def coordinated() -> AsyncIterator[Wire]:
    async with Broker(FEW_LOGS) as started, Wire("127.0.0.1", started.port) as connected:
        await coordinate(connected)
        yield connected


async def _commit(wire: Wire, offset: int) -> None:
    rows = [OffsetCommitRequestPartition(index, offset + index) for index in range(2)]
    await wire.ask(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", ZERO_UUID, rows)]), 9)


def _offsets(groups: list[OffsetFetchResponseGroup]) -> list[tuple[str, list[tuple[str, list[tuple[int, int]]]]]]:
    return [
        (
            group.group_id,
            [(each.name, [(row.partition_index, row.committed_offset) for row in each.partitions]) for each in topics],
        )
        for group in groups
        for topics in [group.topics]
    ]


async def test_a_group_has_its_offsets_once_however_often_it_is_named(coordinated: Wire) -> None:
    await create(coordinated, "t", 2)
    await _commit(coordinated, 5)
    every = OffsetFetchRequestGroup("g", topics=None)
    first = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", ZERO_UUID, [1, 1])])
    second = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", ZERO_UUID, [1, 0, 1])])
    other = OffsetFetchRequestGroup("h", topics=None)

    async def fetched(*groups: OffsetFetchRequestGroup) -> list[tuple[str, list[tuple[str, list[tuple[int, int]]]]]]:
        return _offsets((await coordinated.ask(OffsetFetchRequest(groups=list(groups)), 8)).groups)

    all_rows = ("t", [(0, 5), (1, 6)])
    assert await fetched(*[every] * 100, other, other) == [("g", [all_rows]), ("h", [])]
    assert await fetched(first, every, first) == [("g", [all_rows])]
    assert await fetched(first, second, first) == [("g", [("t", [(1, 6), (0, 5)])])]
    twice = OffsetFetchRequest("g", topics=[OffsetFetchRequestTopic("t", [0, 0]), OffsetFetchRequestTopic("t", [0])])
    [topic] = (await coordinated.ask(twice, 7)).topics
    assert [(row.partition_index, row.committed_offset) for row in topic.partitions] == [(0, 5)]


async def test_groups_are_described_once(coordinated: Wire) -> None:
    await GroupMember(coordinated, "g", "instance").become_only_member()
    groups = (await coordinated.ask(DescribeGroupsRequest(["g", "none", "g", "none"]), 5)).groups
    assert [(row.group_id, row.group_state) for row in groups] == [("g", "Stable"), ("none", "Dead")]
    groups = (await coordinated.ask(ConsumerGroupDescribeRequest(["g", "none", "g", "none"]), 0)).groups
    assert [row.group_id for row in groups] == ["g", "none"]


async def test_producers_of_a_partition_are_described_once(coordinated: Wire) -> None:
    await create(coordinated, "t", 2)
    await produce(coordinated, "t", batch(b"a", producer_id=77, producer_epoch=3, base_sequence=0))
    request = DescribeProducersRequest([ProducersOf("t", [0, 0]), ProducersOf("x", [3, 3]), ProducersOf("t", [1, 0])])
    topics = (await coordinated.ask(request, 0)).topics
    rows = [
        (each.name, [(row.partition_index, len(row.active_producers)) for row in each.partitions]) for each in topics
    ]
    assert rows == [("t", [(0, 1), (1, 0)]), ("x", [(3, 0)])]


async def test_a_transaction_is_described_once(coordinated: Wire) -> None:
    await TransactionalProducer(coordinated, "x").start()
    request = DescribeTransactionsRequest(["x", "none", "x", "none"])
    assert [row.transactional_id for row in (await coordinated.ask(request, 0)).transaction_states] == ["x", "none"]


async def test_a_coordinator_is_found_once(coordinated: Wire) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h", "g"])
    assert [row.key for row in (await coordinated.ask(request, 4)).coordinators] == ["g", "h"]


async def test_a_moved_partition_has_one_row(coordinated: Wire) -> None:
    dirs = [AlterReplicaLogDir("/x", [AlterReplicaLogDirTopic("t", [0, 1, 0]), AlterReplicaLogDirTopic("t", [0])])] * 2
    [topic] = (await coordinated.ask(AlterReplicaLogDirsRequest(dirs), 2)).results
    assert [(row.partition_index, row.error_code) for row in topic.partitions] == [
        (0, ErrorCode.LOG_DIR_NOT_FOUND),
        (1, ErrorCode.LOG_DIR_NOT_FOUND),
    ]


async def test_offsets_of_a_partition_that_is_named_twice_have_one_row(coordinated: Wire) -> None:
    await create(coordinated, "t", 2)
    wanted = [ListOffsetsPartition(index, timestamp=-1) for index in (0, 1, 0, 0)]
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", wanted), ListOffsetsTopic("t", wanted[2:])])
    topics = (await coordinated.ask(request, 6)).topics
    rows = [(row.partition_index, row.error_code) for topic in topics for row in topic.partitions]
    assert rows == [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.NONE)]


async def test_a_fetch_reads_a_partition_once_from_the_last_offset(wire: Wire) -> None:
    await create(wire, "t", 2)
    for value in (b"a", b"b"):
        await produce(wire, "t", batch(value))
    rows = [FetchPartition(index, fetch_offset=offset, partition_max_bytes=1000) for index, offset in _NAMED]
    topics = [FetchTopic("t", ZERO_UUID, rows), FetchTopic("t", ZERO_UUID, rows[2:])]
    for session_epoch in (-1, 0):
        request = FetchRequest(max_wait_ms=0, max_bytes=10_000, session_epoch=session_epoch, topics=topics)
        response: FetchResponse = await wire.ask(request, 12)
        [topic] = response.responses
        assert [(row.partition_index, values_in(row)) for row in topic.partitions] == [(0, [b"b"]), (1, [])]


_NAMED = [(0, 0), (1, 0), (0, 1)]


async def test_the_last_batch_of_a_partition_that_is_named_twice_is_written(wire: Wire) -> None:
    await create(wire, "t", 2)

    def data(index: int, value: bytes) -> PartitionProduceData:
        return PartitionProduceData(index, batch(value))

    first = TopicProduceData("t", ZERO_UUID, [data(0, b"a"), data(1, b"b"), data(0, b"c")])
    second = TopicProduceData("t", ZERO_UUID, [data(0, b"d")])
    request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=[first, second])

    response: ProduceResponse = await wire.ask(request, 9)

    rows = [(row.index, row.error_code, row.base_offset) for row in _rows(response)]
    assert sorted(rows) == [(0, ErrorCode.NONE, 0), (1, ErrorCode.NONE, 0)]
    wanted = [FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)]
    fetch = FetchRequest(max_wait_ms=0, max_bytes=10_000, session_epoch=-1, topics=[FetchTopic("t", ZERO_UUID, wanted)])
    [topic] = (await wire.ask(fetch, 12)).responses
    assert values_in(topic.partitions[0]) == [b"d"]


def _rows(response: ProduceResponse) -> list[PartitionProduceResponse]:
    return [row for topic in response.responses for row in topic.partition_responses]
