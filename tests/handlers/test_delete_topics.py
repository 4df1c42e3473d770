from __future__ import annotations

import asyncio

import pytest

from odradek.broker.broker import Broker
from odradek.broker.replication.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.requests import batch, create, fetch, produce, produce_request
from tests.wire import Wire

AN_ID = bytes(range(16))


async def busy(partition: Partition) -> None:
    """Wait until an append is on its way."""
    while not partition.appender.is_busy:  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)


async def delete(wire: Wire, *states: DeleteTopicState) -> list[DeletableTopicResult]:
    response = await wire.ask(DeleteTopicsRequest(list(states), timeout_ms=10_000), 6)
    results: list[DeletableTopicResult] = response.responses
    return sorted(results, key=lambda result: (result.name or "", result.topic_id))


@pytest.mark.parametrize("version", range(1, 7))
async def test_topics_are_deleted_by_name(wire: Wire, version: int) -> None:
    await create(wire, "t")
    by_name = DeleteTopicsRequest(topic_names=["t", "missing"], timeout_ms=10_000)
    by_state = DeleteTopicsRequest([DeleteTopicState("t"), DeleteTopicState("missing")], timeout_ms=10_000)

    response = await wire.ask(by_state if version >= 6 else by_name, version)

    found = {result.name: result.error_code for result in response.responses}
    assert found == {"t": ErrorCode.NONE, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.usefixtures("only_here")  # on Apache Kafka perhaps not yet
async def test_a_topic_is_deleted_when_the_response_is_sent(wire: Wire) -> None:
    await create(wire, "t")
    await delete(wire, DeleteTopicState("t"))

    assert (await wire.ask(MetadataRequest(None), 12)).topics == []
    assert (await fetch(wire, "t")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await produce(wire, "t", batch(b"a"))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_are_deleted_by_id(wire: Wire) -> None:
    topic_id = await create(wire, "t")

    unknown, deleted = await delete(wire, DeleteTopicState(None, topic_id), DeleteTopicState(None, AN_ID))

    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("t", topic_id, ErrorCode.NONE)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, AN_ID, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_a_topic_named_twice_is_refused(wire: Wire) -> None:
    topic_id = await create(wire, "t")

    for states in (
        [DeleteTopicState("t", topic_id)],
        [DeleteTopicState(None, bytes(16))],
        [DeleteTopicState("t"), DeleteTopicState("t")],
        [DeleteTopicState(None, topic_id), DeleteTopicState(None, topic_id)],
        [DeleteTopicState("t"), DeleteTopicState(None, topic_id)],
    ):
        results = await delete(wire, *states)
        assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert [topic.name for topic in (await wire.ask(MetadataRequest(None), 12)).topics] == ["t"]


@pytest.mark.usefixtures("only_here")  # Apache Kafka's rows have no order
async def test_rows_have_the_order_of_the_request(wire: Wire) -> None:
    ids = {name: await create(wire, name) for name in ("a", "b", "c", "d", "e")}
    states = [
        DeleteTopicState("c"),
        DeleteTopicState("missing"),
        DeleteTopicState("e"),
        DeleteTopicState(None, ids["b"]),
        DeleteTopicState("e"),
        DeleteTopicState("d", ids["d"]),
        DeleteTopicState("a"),
    ]

    response = await wire.ask(DeleteTopicsRequest(states, timeout_ms=10_000), 6)

    assert [(row.name, row.error_code) for row in response.responses] == [
        ("c", ErrorCode.NONE),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("e", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
        ("d", ErrorCode.INVALID_REQUEST),
        ("a", ErrorCode.NONE),
    ]
    assert sorted(topic.name for topic in (await wire.ask(MetadataRequest(None), 12)).topics) == ["d", "e"]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
async def test_deletion_can_be_disabled(version: int, code: ErrorCode) -> None:
    async with Broker({"delete.topic.enable": "false"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")

        response = await wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), version)

        assert [result.error_code for result in response.responses] == [code]


async def test_a_topic_can_be_deleted_during_a_large_append(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    partition = broker.services.partitions.get("t", 0)
    request = produce_request("t", batch(b"x" * 900_000))
    async with Wire("127.0.0.1", broker.port) as producer:
        await producer.send(request, 9)
        await busy(partition)

        [result] = await delete(wire, DeleteTopicState("t"))
        response = await producer.receive(request, 9)

    assert result.error_code == ErrorCode.NONE
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert len(broker.services.partitions) == 0


async def test_the_series_of_a_deleted_topic_end(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))

    await delete(wire, DeleteTopicState("t"))

    assert "t" not in broker.metrics.topics
