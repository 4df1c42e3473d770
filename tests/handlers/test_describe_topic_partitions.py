from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import create
from tests.wire import Wire


async def describe(
    wire: Wire, *names: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
    response = await wire.ask(request, 0)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def found(response: DescribeTopicPartitionsResponse) -> dict[str | None, list[int]]:
    return {topic.name: [row.partition_index for row in topic.partitions] for topic in response.topics}


async def abc(wire: Wire) -> None:
    for name, partitions in (("c", 1), ("a", 3), ("b", 2)):
        await create(wire, name, partitions)


async def test_topics_come_by_name_with_all_their_partitions(wire: Wire) -> None:
    await abc(wire)

    response = await describe(wire, "b", "a")

    assert found(response) == {"a": [0, 1, 2], "b": [0, 1]}
    assert [topic.name for topic in response.topics] == ["a", "b"]
    assert response.next_cursor is None
    [first, *_] = response.topics[0].partitions
    assert (first.leader_id, first.replica_nodes, first.isr_nodes, first.offline_replicas) == (1, [1], [1], [])


async def test_without_names_all_topics_are_described(wire: Wire) -> None:
    await abc(wire)

    assert found(await describe(wire)) == {"a": [0, 1, 2], "b": [0, 1], "c": [0]}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 100])
@pytest.mark.parametrize("names", [(), ("c", "b", "a")])
async def test_all_pages_together_have_each_partition_once(wire: Wire, limit: int, names: tuple[str, ...]) -> None:
    await abc(wire)
    seen: dict[str | None, list[int]] = {}
    cursor = None

    while True:
        response = await describe(wire, *names, limit=limit, cursor=cursor)
        assert sum(map(len, found(response).values())) <= limit
        for name, indexes in found(response).items():
            seen.setdefault(name, []).extend(indexes)
        cursor = response.next_cursor
        if cursor is None:
            break

    assert seen == {"a": [0, 1, 2], "b": [0, 1], "c": [0]}


async def test_a_page_has_at_least_one_partition(wire: Wire) -> None:
    await abc(wire)

    response = await describe(wire, "a", limit=0)

    assert (found(response), response.next_cursor) == ({"a": [0]}, Cursor("a", 1))


async def test_the_broker_limits_pages() -> None:
    async with (
        Broker({"max.request.partition.size.limit": "2"}) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        await abc(wire)
        assert found(await describe(wire)) == {"a": [0, 1]}


async def test_an_unknown_topic_is_an_error(wire: Wire) -> None:
    await create(wire, "a")

    codes = {topic.name: topic.error_code for topic in (await describe(wire, "a", "missing", "bad name")).topics}

    assert codes == {
        "a": ErrorCode.NONE,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


@pytest.mark.parametrize("cursor", [Cursor("b", 0), Cursor("a", -1)])
async def test_a_cursor_must_be_of_a_named_topic(wire: Wire, cursor: Cursor) -> None:
    await abc(wire)

    [topic] = (await describe(wire, "a", cursor=cursor)).topics

    assert topic.error_code == ErrorCode.INVALID_REQUEST


async def test_replicas_out_of_sync_or_offline_are_listed(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    publish(broker, "t", leader=OTHER, isr={OTHER: 9}, eligible_leader_replicas={SELF: 9})

    [topic] = (await describe(wire, "t")).topics
    [row] = topic.partitions

    assert (row.leader_id, row.replica_nodes, row.isr_nodes, row.eligible_leader_replicas) == (
        OTHER,
        [SELF, OTHER],
        [OTHER],
        [SELF],
    )
