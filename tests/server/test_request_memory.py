"""The memory of large requests of all connections together (`queued.max.request.bytes`)."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from odradek.broker.request.context import RequestContext
from odradek.broker.server.connections import STUCK_SECONDS
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.server.serving import (
    METADATA_VERSION,
    PRODUCE_VERSION,
    Client,
    Handlers,
    Serve,
    Serving,
    default_handlers,
    framed_request,
)
from tests.server.test_connection import produce, produced, records_of

MIB = 1 << 20
LIMIT = 4 * MIB
REQUEST = framed_request("Produce", PRODUCE_VERSION, produce(bytes(2 * MIB)))
HALF = MIB


def answering() -> Handlers:
    handlers = default_handlers()
    handlers.on("Produce", lambda context, request: produced(len(records_of(request))))
    return handlers


async def serve_with_limit(serve: Serve, handlers: Handlers | None = None, limit: int = LIMIT) -> Serving:
    return await serve(
        handlers or answering(),
        queued_max_request_bytes=str(limit),
        socket_request_max_bytes=str(3 * MIB),
        max_connections_per_ip="1000",
    )


def held(serving: Serving) -> int:
    return serving.connections.arena.memory.held


async def send_parts(serving: Serving, count: int) -> tuple[list[Client], list[asyncio.Task[None]]]:
    """So many clients that each have sent, or try to send, all of a request but its last byte."""
    clients = [await serving.connect() for _ in range(count)]
    sending = [asyncio.ensure_future(client.send(REQUEST[:-1])) for client in clients]
    return clients, sending


async def until_quiet(serving: Serving) -> None:
    """Wait until a turn of every connection brings nothing more."""
    before = -1
    while before != (before := sum(connection.buffered for connection in serving.connections)):
        for _ in range(50):
            await asyncio.sleep(0)


async def base_offset_of(client: Client) -> int:
    _, response = await client.receive_response("Produce", PRODUCE_VERSION)
    offset: int = response.responses[0].partition_responses[0].base_offset
    return offset


async def test_large_requests_stay_within_the_limit_and_are_all_answered(serve: Serve) -> None:
    serving = await serve_with_limit(serve)
    clients, sending = await send_parts(serving, 20)
    await until_quiet(serving)
    # The limit, one doubling of a buffer beyond it, the one request that may continue, and the starts of others.
    assert LIMIT <= held(serving) <= LIMIT + 2 * len(REQUEST) + 20 * 256 * 1024
    assert held(serving) < 15 * 2 * MIB

    other = await serving.connect()
    assert (await other.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"

    async def finish(client: Client, sent: asyncio.Task[None]) -> int:
        await sent
        await client.send(REQUEST[-1:])
        return await base_offset_of(client)

    async with asyncio.timeout(60):
        answered = await asyncio.gather(*map(finish, clients, sending))
    assert answered == [2 * MIB] * 20
    serving.connections.arena.trim()
    assert held(serving) < LIMIT


async def test_the_memory_of_a_closed_connection_is_freed_for_others(serve: Serve) -> None:
    serving = await serve_with_limit(serve)
    clients, sending = await send_parts(serving, 8)
    await until_quiet(serving)
    for sent in sending[:-1]:
        sent.cancel()
    await asyncio.gather(*sending[:-1], return_exceptions=True)
    for client in clients[:-1]:
        client.close()
    async with asyncio.timeout(60):
        await sending[-1]
        await clients[-1].send(REQUEST[-1:])
        assert await base_offset_of(clients[-1]) == 2 * MIB


async def test_a_client_without_progress_is_closed_while_others_wait(serve: Serve) -> None:
    serving = await serve_with_limit(serve, limit=HALF)
    stuck = await serving.connect()
    await stuck.send(REQUEST[: HALF + HALF // 2])
    await until_quiet(serving)
    other = await serving.connect()
    sent = asyncio.ensure_future(other.send(REQUEST))
    await until_quiet(serving)
    assert sorted(connection.is_reading for connection in serving.connections) == [False, True]
    serving.connections.close_idle()
    assert len(serving.connections) == 2

    serving.clock.advance(STUCK_SECONDS * 1000)
    serving.connections.close_idle()

    assert await stuck.is_closed()
    async with asyncio.timeout(60):
        await sent
        assert await base_offset_of(other) == 2 * MIB


async def test_a_request_after_a_disconnect_counts_until_it_is_executed(serve: Serve) -> None:
    handlers = default_handlers()
    kept: list[Any] = []
    ended: asyncio.Future[ProduceResponse] = asyncio.get_running_loop().create_future()

    def handle(context: object, request: ProduceRequest) -> asyncio.Future[ProduceResponse]:
        kept.append(request)
        return ended

    handlers.on("Produce", handle)
    serving = await serve_with_limit(serve, handlers)
    client = await serving.connect()
    await client.send(REQUEST)
    await serving.until(lambda: bool(kept))
    client.reset()
    await serving.until(lambda: len(serving.connections) == 0)
    assert held(serving) >= 2 * MIB

    ended.set_result(produced(0))
    await asyncio.sleep(0)
    kept.clear()
    serving.connections.arena.trim()
    gc.collect()
    assert held(serving) == 0


@pytest.mark.parametrize("limit", [-1, 0])
async def test_without_a_limit_and_with_none_left_requests_are_answered(serve: Serve, limit: int) -> None:
    serving = await serve_with_limit(serve, limit=limit)
    client = await serving.connect()
    for _ in range(3):
        await client.send(REQUEST)
        assert await base_offset_of(client) == 2 * MIB


async def test_a_muted_client_in_the_middle_of_a_request_does_not_hold_up_the_others(serve: Serve) -> None:
    throttled: asyncio.Future[ProduceResponse] = asyncio.get_running_loop().create_future()
    handlers, contexts = answering(), list[RequestContext]()

    def answer(context: RequestContext, request: ProduceRequest) -> Any:
        contexts.append(context)
        return throttled if len(contexts) == 1 else produced(len(records_of(request)))

    handlers.on("Produce", answer)
    serving = await serve_with_limit(serve, handlers, limit=HALF)
    muted = await serving.connect()
    sending = asyncio.ensure_future(muted.send(REQUEST + REQUEST[:-1]))
    await serving.until(lambda: bool(contexts))
    await until_quiet(serving)

    contexts[0].connection.throttle_ms = 3_600_000
    throttled.set_result(produced(1))
    assert await base_offset_of(muted) == 1
    other = await serving.connect()
    async with asyncio.timeout(10):
        await other.send(REQUEST)
        assert await base_offset_of(other) == 2 * MIB
    sending.cancel()
