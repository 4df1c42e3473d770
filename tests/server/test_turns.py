"""A connection's turn has a time, whatever its requests are: then other connections are served."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Any

import pytest

from odradek.broker.request.time_slices import SLICE_SECONDS
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.schema import Message
from tests.security.tls.handshakes import client_context
from tests.server.securing import AUTHORITY, connect, secured
from tests.server.serving import METADATA_VERSION, Client, Serve, default_handlers, framed_request
from tests.server.tls_client import TlsClient

PIPELINED = 8
SMALL = MetadataRequest()
LARGE = MetadataRequest([MetadataRequestTopic(name="t" * 20_000) for _ in range(3)])
"""Some 60 kB: a turn receives each by a call of its own, and decodes it at once."""


@pytest.mark.parametrize("request_", [SMALL, LARGE], ids=["received together", "received one by one"])
async def test_another_client_is_served_between_two_slow_requests(serve: Serve, request_: MetadataRequest) -> None:
    clock, handlers, order = ManualClock(), default_handlers(), list[str]()
    others: list[Client] = []

    def slow(context: Any, request: Message) -> MetadataResponse:
        if not order:
            others[0].socket.send(framed_request("ApiVersions", 3, ApiVersionsRequest("other", "1")))
        order.append("slow")
        clock.advance(int(SLICE_SECONDS * 1000))
        return MetadataResponse()

    def quick(context: Any, request: Message) -> ApiVersionsResponse:
        order.append("quick")
        return ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)])

    handlers.on("Metadata", slow)
    handlers.on("ApiVersions", quick)
    serving = await serve(handlers, clock=clock)
    busy = await serving.connect()
    others.append(await serving.connect())
    await serving.until(lambda: len(serving.connections) == 2)

    await busy.send(framed_request("Metadata", METADATA_VERSION, request_) * PIPELINED)
    for _ in range(PIPELINED):
        await busy.receive_response("Metadata", METADATA_VERSION)

    assert order.count("slow") == PIPELINED
    assert order.index("quick") < PIPELINED


async def test_connections_with_slow_requests_share_one_turn(serve: Serve) -> None:
    clock, handlers, handled = ManualClock(), default_handlers(), list[Message]()

    def slow(context: Any, request: Message) -> MetadataResponse:
        handled.append(request)
        clock.advance(int(SLICE_SECONDS * 1000))
        return MetadataResponse()

    handlers.on("Metadata", slow)
    serving = await serve(handlers, clock=clock)
    clients = [await serving.connect() for _ in range(10)]
    for client in clients:
        client.socket.send(framed_request("Metadata", METADATA_VERSION, SMALL) * 100)
    await serving.until(lambda: len(handled) >= len(clients))

    before = len(handled)
    for _ in range(20):
        await asyncio.sleep(0)

    assert 0 < len(handled) - before <= 21


async def test_a_long_step_of_a_handshake_does_not_delay_others(serve: Serve) -> None:
    tls, answered = secured(), threading.Event()
    serving = await serve(tls=tls)
    other = await connect(serving)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def step(*_: Any) -> int | None:
        loop.call_soon_threadsafe(started.set)
        return None if answered.wait(10) else ssl.ALERT_DESCRIPTION_INTERNAL_ERROR

    tls.context.sni_callback = step
    connecting = asyncio.ensure_future(connect(serving))
    await started.wait()
    await other.ask("ApiVersions", 3, ApiVersionsRequest("other", "1"))
    answered.set()

    client = await connecting
    await client.ask("ApiVersions", 3, ApiVersionsRequest("slow", "1"))


async def test_a_stop_ends_a_handshake_whose_step_is_under_way(serve: Serve) -> None:
    tls, answered = secured(), threading.Event()
    serving = await serve(tls=tls)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def step(*_: Any) -> None:
        loop.call_soon_threadsafe(started.set)
        answered.wait(10)

    tls.context.sni_callback = step
    client = await serving.connect()
    connecting = asyncio.ensure_future(TlsClient(client, client_context(AUTHORITY)).handshake())
    await started.wait()

    await serving.server.finish(0)
    answered.set()

    with pytest.raises((ConnectionError, EOFError, ssl.SSLError)):
        await connecting
