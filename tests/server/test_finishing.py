"""The end of the connections of a broker that stops: what was received is answered, and the answers are read."""

from __future__ import annotations

import asyncio
import select

import pytest

from odradek.broker.testing.clock import ManualClock
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.server.serving import (
    FETCH_VERSION,
    METADATA_VERSION,
    PRODUCE_VERSION,
    Serve,
    default_handlers,
    framed_request,
)

A_REQUEST = framed_request("Metadata", METADATA_VERSION, MetadataRequest())


async def test_finishing_answers_received_requests_and_accepts_no_more(serve: Serve) -> None:
    handlers, parked = default_handlers(), asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    serving = await serve(handlers)
    client, idle = await serving.connect(), await serving.connect()
    await client.send(framed_request("Fetch", FETCH_VERSION, FetchRequest()) + A_REQUEST)
    await serving.until(lambda: any(connection.buffered for connection in serving.connections))
    finishing = asyncio.create_task(serving.server.finish(20))
    assert await idle.is_closed()
    with pytest.raises(ConnectionRefusedError):
        await serving.connect()
    parked.set_result(FetchResponse())
    await client.receive_frame()
    await client.receive_frame()
    assert await client.is_closed()
    await finishing


async def test_a_client_that_sends_while_the_broker_finishes_receives_its_answers(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    await client.send(A_REQUEST)
    await serving.until(lambda: bool(select.select([client.socket], [], [], 0)[0]))
    finishing = asyncio.create_task(serving.server.finish(20))
    await serving.until(lambda: not len(serving.connections))
    for _ in range(3):
        await client.send(A_REQUEST)  # a socket that was closed would be reset, and sending would fail
    await client.receive_frame()
    assert await client.is_closed()
    client.close()
    await finishing


async def test_a_client_whose_last_answer_took_long_to_make_receives_it(serve: Serve) -> None:
    handlers, parked, clock = default_handlers(), asyncio.get_running_loop().create_future(), ManualClock()
    handlers.on("Fetch", lambda context, request: parked)

    def answer_slowly(*_: object) -> MetadataResponse:
        clock.advance(1000)
        return MetadataResponse(cluster_id="test")

    handlers.on("Metadata", answer_slowly)
    serving = await serve(handlers, clock=clock)
    client = await serving.connect()
    await client.send(framed_request("Fetch", FETCH_VERSION, FetchRequest()) + A_REQUEST)
    await serving.until(lambda: any(connection.buffered for connection in serving.connections))
    finishing = asyncio.create_task(serving.server.finish(20))
    await asyncio.sleep(0)
    parked.set_result(FetchResponse())
    await serving.until(lambda: not len(serving.connections))
    for _ in range(3):
        await client.send(A_REQUEST)  # a socket that was closed would be reset, and sending would fail
    for _ in range(2):
        await client.receive_frame()
    assert await client.is_closed()
    client.close()
    await finishing


async def test_a_client_that_took_long_to_read_an_answer_receives_the_end_of_it(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: MetadataResponse(cluster_id="x" * 30_000))
    serving = await serve(handlers, socket_send_buffer_bytes="4096")
    client = await serving.connect(receive_buffer=4096)
    await client.send(A_REQUEST * 6)
    size = 4 + len(await client.receive_frame())
    await serving.until(lambda: any(connection.unsent for connection in serving.connections))
    serving.clock.advance(1000)
    finishing = asyncio.create_task(serving.server.finish(20))
    await client.receive_exactly(5 * size - 1000)
    await serving.until(lambda: not len(serving.connections))
    for _ in range(3):
        await client.send(A_REQUEST)
    await client.receive_exactly(1000)
    assert await client.is_closed()
    client.close()
    await finishing


async def test_finishing_that_is_cancelled_closes_all_connections(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Produce", lambda context, request: asyncio.get_running_loop().create_future())
    serving = await serve(handlers)
    client, recent = await serving.connect(), await serving.connect()
    await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest())
    await recent.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    finishing = asyncio.create_task(serving.server.finish(20))
    await serving.until(lambda: len(serving.connections) == 1)
    finishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finishing
    assert not len(serving.connections)
    assert await client.is_closed()
    assert await recent.is_closed()


async def test_finishing_does_not_wait_for_a_client_that_is_quiet(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.server.finish(20)
    assert await client.is_closed()


async def test_finishing_ends_although_a_client_sends_for_ever(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())

    async def send_for_ever() -> None:
        while True:
            await client.send(bytes(1000))

    sending = asyncio.create_task(send_for_ever())
    await serving.server.finish(0.2)
    with pytest.raises(ConnectionError):
        await sending


async def test_finishing_ends_after_its_timeout_and_cancels_the_rest(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = default_handlers()
    cancelled = []

    async def handle(context: object, request: ProduceRequest) -> ProduceResponse:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(request)
            raise
        raise AssertionError

    handlers.on("Produce", handle)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest())
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    await serving.server.finish(0)
    assert await client.is_closed()
    assert len(cancelled) == 1
