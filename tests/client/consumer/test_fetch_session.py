"""Fetch sessions over a scripted network: incremental requests, and full ones after an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import Consumer
from odradek.client.consumer.fetch_session import FetchKey, FetchSession
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from tests.client.reading import read
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import batch, drop_unread, serve_and_drop
from tests.client.virtual_time import simulated


def network_of(partitions: int = 3) -> ScriptedNetwork:
    network = ScriptedNetwork(with_sessions=True)
    network.create("t", partitions)
    return network


def said(request: FetchRequest) -> list[tuple[int, int]]:
    return [(partition.partition, partition.fetch_offset) for topic in request.topics for partition in topic.partitions]


@simulated
async def test_requests_after_the_first_contain_only_changes() -> None:
    network = network_of()
    broker = network.brokers[1]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", index) for index in range(3)])
        assert await consumer.poll(timeout_ms=1200) == []
        network.logs["t", 1].add(batch([b"1", b"2"]))
        await read(consumer, 2)
        await asyncio.sleep(1)
    requests = broker.received(FetchRequest)
    assert [said(request) for request in requests[:3]] == [[(0, 0), (1, 0), (2, 0)], [], []]
    assert [said(request) for request in requests[3:] if said(request)] == [[(1, 2)]]
    assert [request.session_epoch for request in requests] == list(range(len(requests)))
    assert {request.session_id for request in requests[1:]} == {1}


@simulated
async def test_unassigned_partitions_are_removed_from_the_session() -> None:
    network = network_of()
    broker = network.brokers[1]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", index) for index in range(3)])
        assert await consumer.poll(timeout_ms=600) == []
        consumer.pause(("t", 0))
        assert await consumer.poll(timeout_ms=600) == []
        consumer.resume(("t", 0))
        network.logs["t", 0].add(batch([b"x"]))
        await read(consumer, 1)
    requested = [(request.forgotten_topics_data, said(request)) for request in broker.received(FetchRequest)]
    forgotten = [topic.partitions for topics, _ in requested for topic in topics]
    assert forgotten == [[0]]
    assert [(0, 0)] in [partitions for _, partitions in requested[1:]]


@pytest.mark.parametrize("how", [drop_unread, serve_and_drop])
@simulated
async def test_a_lost_response_replaces_the_session(how: Any) -> None:
    network = network_of()
    broker = network.brokers[1]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", index) for index in range(3)])
        assert await consumer.poll(timeout_ms=600) == []
        broker.script("Fetch", how)
        for offset in range(2):
            network.logs["t", 2].add(batch([b"x"], offset))
            assert [record.offset for record in await read(consumer, 1)] == [offset]
            await asyncio.sleep(1)
    opening = [request for request in broker.received(FetchRequest) if request.session_epoch == 0]
    assert [(request.session_id, len(said(request))) for request in opening] == [(0, 3), (1, 3)]


@simulated
async def test_a_session_that_the_broker_evicted_is_opened_again() -> None:
    network = network_of()
    broker = network.brokers[1]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", index) for index in range(3)])
        assert await consumer.poll(timeout_ms=600) == []
        broker.sessions.forget()
        network.logs["t", 0].add(batch([b"x"]))
        assert [record.value for record in await read(consumer, 1)] == [b"x"]
        assert await consumer.poll(timeout_ms=2000) == []
    opening = [request for request in broker.received(FetchRequest) if request.session_epoch == 0]
    assert [request.session_id for request in opening] == [0, 0]
    assert broker.sessions.incremental > 2


@simulated
async def test_every_request_is_full_without_sessions() -> None:
    network = ScriptedNetwork()
    network.create("t", 2)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        assert await consumer.poll(timeout_ms=1600) == []
    requests = network.brokers[1].received(FetchRequest)
    assert len(requests) > 2
    assert all(said(request) == [(0, 0), (1, 0)] for request in requests)
    assert all((request.session_id, request.session_epoch) == (0, 0) for request in requests)


@simulated
async def test_a_recreated_topic_is_another_one_in_the_session() -> None:
    network = network_of(1)
    broker = network.brokers[1]
    before = network.topic_id("t")
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", metadata_max_age_ms=1000
    ) as consumer:
        consumer.assign([("t", 0)])
        assert await consumer.poll(timeout_ms=600) == []
        network.create("t", 1)
        network.logs["t", 0].add(batch([b"x"]))
        assert [record.value for record in await read(consumer, 1)] == [b"x"]
    assert [topic.topic_id for request in broker.received(FetchRequest) for topic in request.forgotten_topics_data] == [
        before
    ]


def test_topics_by_id_and_by_name_do_not_share_a_session() -> None:
    session, request = FetchSession(), FetchRequest()
    wanted = {FetchKey("t", b"i" * 16, 0): FetchPartition(0)}
    session.fill(request, wanted, by_id=True)
    session.handle_response(FetchResponse(session_id=7))
    session.fill(request, wanted, by_id=False)
    assert (request.session_id, request.session_epoch, len(request.topics)) == (7, 0, 1)


@pytest.mark.parametrize(
    ("code", "session_id"), [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7)]
)
def test_an_error_of_the_session_ends_it(code: ErrorCode, session_id: int) -> None:
    session, request = FetchSession(), FetchRequest()
    session.fill(request, {}, by_id=True)
    session.handle_response(FetchResponse(session_id=7))
    session.handle_response(FetchResponse(error_code=code))
    session.fill(request, {}, by_id=True)
    assert (request.session_id, request.session_epoch) == (session_id, 0)


async def refuse(broker: Broker, request: Any) -> FetchResponse:
    return FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)


@simulated
async def test_the_user_does_not_see_a_session_error() -> None:
    network = network_of(1)
    network.logs["t", 0].add(batch([b"x"]))
    network.brokers[1].script("Fetch", refuse)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        assert [record.value for record in await read(consumer, 1)] == [b"x"]
