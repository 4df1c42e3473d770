"""Muted connections (KIP-219): a handler sets the throttle time, as quotas do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.broker.request.context import RequestContext
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.server.serving import METADATA_VERSION, Handlers, Serve, default_handlers, framed_request

LONG_MS = 3_600_000
A_REQUEST = framed_request("Metadata", METADATA_VERSION, MetadataRequest())


class Throttled:
    """A handler that throttles its client, as often as `times` says."""

    def __init__(self, milliseconds: int, times: int = 1) -> None:
        self.milliseconds = milliseconds
        self.times = times
        self.calls = 0

    def __call__(self, context: RequestContext, request: Any) -> MetadataResponse:
        self.calls += 1
        if self.times:
            self.times -= 1
            context.connection.throttle_ms = self.milliseconds
        return MetadataResponse(throttle_time_ms=self.milliseconds, cluster_id="test")


class LaterThrottled(Throttled):
    """The same, after a wait."""

    async def wait(self, context: RequestContext, request: Any) -> MetadataResponse:
        await asyncio.sleep(0)
        return super().__call__(context, request)

    def __call__(self, context: RequestContext, request: Any) -> Any:
        return self.wait(context, request)


def handlers(metadata: Throttled) -> Handlers:
    made = default_handlers()
    made.on("Metadata", metadata)
    return made


@pytest.mark.parametrize("kind", [Throttled, LaterThrottled])
async def test_the_answer_goes_out_at_once_and_the_next_request_waits(serve: Serve, kind: type[Throttled]) -> None:
    metadata = kind(150)
    serving = await serve(handlers(metadata))
    client = await serving.connect()
    loop = asyncio.get_running_loop()

    began = loop.time()
    await client.send(A_REQUEST * 2)
    await client.receive_response("Metadata", METADATA_VERSION)
    assert loop.time() - began < 0.15
    assert metadata.calls == 1
    await client.receive_response("Metadata", METADATA_VERSION)
    assert loop.time() - began >= 0.149


async def test_other_connections_are_not_slowed(serve: Serve) -> None:
    metadata = Throttled(LONG_MS)
    serving = await serve(handlers(metadata))
    muted, other = await serving.connect(), await serving.connect()
    await muted.ask("Metadata", METADATA_VERSION, MetadataRequest())

    await muted.send(A_REQUEST * 100)
    for _ in range(100):
        await other.ask("Metadata", METADATA_VERSION, MetadataRequest())

    assert metadata.calls == 101
    assert sorted(connection.is_reading for connection in serving.connections) == [False, True]


async def test_of_pipelined_requests_one_is_executed_after_each_pause(serve: Serve) -> None:
    metadata = Throttled(1, times=50)
    serving = await serve(handlers(metadata))
    client = await serving.connect()

    await client.send(A_REQUEST * 51)
    for _ in range(51):
        await client.receive_response("Metadata", METADATA_VERSION)

    assert metadata.calls == 51


async def test_a_muted_connection_becomes_idle(serve: Serve) -> None:
    serving = await serve(handlers(Throttled(LONG_MS)), connections_max_idle_ms="60000")
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())

    serving.clock.advance(60_000)
    serving.connections.close_idle()

    assert await client.is_closed()
    assert len(serving.connections) == 0


async def test_a_stop_answers_what_was_received_and_waits_for_no_pause(serve: Serve) -> None:
    metadata = Throttled(LONG_MS, times=3)
    serving = await serve(handlers(metadata))
    client = await serving.connect()
    await client.send(A_REQUEST * 3)
    await client.receive_response("Metadata", METADATA_VERSION)

    await asyncio.wait_for(serving.server.finish(10), 5)

    for _ in range(2):
        await client.receive_response("Metadata", METADATA_VERSION)
    assert await client.is_closed()


async def test_closing_ends_the_pause(serve: Serve) -> None:
    serving = await serve(handlers(Throttled(20)))
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    closed = asyncio.get_running_loop().create_future()

    await serving.connections.close("a test")
    asyncio.get_running_loop().call_later(0.05, closed.set_result, None)
    await closed

    assert await client.is_closed()


async def test_a_client_that_leaves_during_the_pause_is_removed_after_it(serve: Serve) -> None:
    serving = await serve(handlers(Throttled(50)))
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())

    client.close()

    await serving.until(lambda: len(serving.connections) == 0)
