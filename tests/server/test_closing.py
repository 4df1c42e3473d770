from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol import header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.server.serving import (
    FETCH_VERSION,
    METADATA_VERSION,
    PRODUCE_VERSION,
    Client,
    Serve,
    Serving,
    Slice,
    default_handlers,
    framed_request,
    lines_of,
)

A_REQUEST = framed_request("Metadata", METADATA_VERSION, MetadataRequest())


def fetched(records: Slice) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, records=records)])])


async def assert_serves(serving: Serving, client: Client) -> None:
    assert (await client.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"
    await serving.until(lambda: len(serving.connections) == 1)


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"\xff\xff\xff\xff" + b"x" * 100, "negative"),
        (struct.pack(">i", 100 * 1024 * 1024 + 1), "over the limit"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (struct.pack(">i", 3) + b"abc", "header"),
        (struct.pack(">ihhih", 10, 99, 0, 1, -1), "API key 99"),
        (struct.pack(">ihhih", 10, -1, 0, 1, -1), "API key -1"),
        (struct.pack(">ihhihb", 11, 3, 77, 1, -1, 0), "Metadata version 77"),
        (struct.pack(">ihhih", 10, 3, -1, 1, -1), "Metadata version -1"),
        (struct.pack(">ihhih", 10, 3, 0, 1, 500), "client id"),
        (struct.pack(">ihhihi", 14, 3, 0, 1, -1, 0x7FFFFFFF), "MetadataRequest version 0"),
    ],
)
async def test_garbage_closes_only_its_connection_with_one_line(
    serve: Serve, caplog: pytest.LogCaptureFixture, garbage: bytes, reason: str
) -> None:
    serving = await serve()
    other, client = await serving.connect(), await serving.connect()
    await client.send(garbage)
    assert await client.is_closed()
    await assert_serves(serving, other)
    (line,) = lines_of(caplog)
    assert reason in line
    assert f"peer=127.0.0.1:{client.socket.getsockname()[1]}" in line


async def test_requests_before_the_garbage_are_answered(serve: Serve) -> None:
    client = await (await serve()).connect()
    await client.send(A_REQUEST * 3 + b"\xff" * 8)
    for _ in range(3):
        await client.receive_frame()
    assert await client.is_closed()


async def test_garbage_behind_a_parked_request_is_found_when_its_turn_comes(serve: Serve) -> None:
    handlers, parked = default_handlers(), asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send(framed_request("Fetch", FETCH_VERSION, FetchRequest()) + A_REQUEST + b"\xff" * 8)
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    parked.set_result(FetchResponse())
    await client.receive_frame()
    await client.receive_frame()
    assert await client.is_closed()


@pytest.mark.parametrize("records_bytes", [100, 100_000])
async def test_a_parked_request_is_answered_before_a_bad_size_behind_it_closes_the_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture, records_bytes: int
) -> None:
    handlers, parked = default_handlers(), asyncio.get_running_loop().create_future()
    handlers.on("Produce", lambda context, request: parked)
    serving = await serve(handlers)
    other, client = await serving.connect(), await serving.connect()
    data = PartitionProduceData(0, bytes(records_bytes))
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    await client.send(framed_request("Produce", PRODUCE_VERSION, request) + b"\xff" * 8)
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    await other.ask("Metadata", METADATA_VERSION, MetadataRequest())
    parked.set_result(ProduceResponse())
    await client.receive_frame()
    assert await client.is_closed()
    (line,) = lines_of(caplog)
    assert "negative" in line


async def test_an_unknown_version_of_api_versions_returns_the_known_ones(serve: Serve) -> None:
    client = await (await serve()).connect()
    frame = struct.pack(">hhih", 18, 5, 42, 4) + b"test" + b"\x00" + b"\x05name\x041.0\x00"
    await client.send(struct.pack(">i", len(frame)) + frame)
    correlation_id, response = header.decode_response(18, 0, await client.receive_frame())
    assert correlation_id == 42
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [(18, 0, 4)]
    assert (await client.ask("ApiVersions", 4, ApiVersionsRequest("x", "1"))).error_code == 0


@pytest.mark.parametrize("leave", [Client.close, Client.reset])
async def test_a_disconnect_cancels_the_parked_fetch_and_releases_all(
    serve: Serve, leave: Callable[[Client], None]
) -> None:
    handlers, parked = default_handlers(), asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Fetch", FETCH_VERSION, FetchRequest())
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    leave(client)
    await serving.until(parked.cancelled)
    assert len(serving.connections) == 0


async def test_a_disconnect_during_an_answer_leaves_no_file_open(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(5_000_000))
    handlers, of = default_handlers(), Slice(tmp_path / "log", 0, 5_000_000)
    handlers.on("Fetch", lambda context, request: fetched(of))
    serving = await serve(handlers)
    client = await serving.connect(receive_buffer=4096)
    await client.send_request("Fetch", FETCH_VERSION, FetchRequest())
    await client.receive_exactly(1_000_000)
    assert not of.is_released
    client.reset()
    await serving.until(lambda: len(serving.connections) == 0)
    assert of.is_released


async def test_an_answer_after_a_disconnect_leaves_no_file_open(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(100))
    handlers, of = default_handlers(), Slice(tmp_path / "log", 0, 100)
    parked = asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Fetch", FETCH_VERSION, FetchRequest())
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    (connection,) = serving.connections
    parked.set_result(fetched(of))
    connection.close("at the same moment")
    await serving.until(lambda: of.is_released)


async def test_a_started_request_is_finished_after_a_disconnect(serve: Serve) -> None:
    handlers, going_on, ended = default_handlers(), asyncio.Event(), asyncio.Event()

    async def handle(context: object, request: ProduceRequest) -> ProduceResponse:
        await going_on.wait()
        ended.set()
        return ProduceResponse()

    handlers.on("Produce", handle)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest(acks=1))
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    client.reset()
    await serving.until(lambda: len(serving.connections) == 0)
    going_on.set()
    await serving.until(ended.is_set)


async def test_an_unexpected_error_is_logged_after_a_disconnect(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    handlers, going_on = default_handlers(), asyncio.Event()

    async def handle(context: object, request: ProduceRequest) -> ProduceResponse:
        await going_on.wait()
        raise ZeroDivisionError

    handlers.on("Produce", handle)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest(acks=1))
    await serving.until(lambda: any(connection.is_busy for connection in serving.connections))
    client.reset()
    await serving.until(lambda: len(serving.connections) == 0)
    going_on.set()
    await serving.until(lambda: serving.metrics.unexpected_errors == 1)
    assert ["request failed" in line for line in lines_of(caplog)] == [True]
    assert serving.metrics.requests_in_flight == 0


async def test_requests_without_answers_are_executed_after_a_disconnect(serve: Serve) -> None:
    handlers, executed = default_handlers(), []

    async def handle(context: object, request: ProduceRequest) -> None:
        await asyncio.sleep(0)
        executed.append(request.timeout_ms)

    handlers.on("Produce", handle)
    serving = await serve(handlers)
    client = await serving.connect()
    for number in range(100):
        await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest(acks=0, timeout_ms=number))
    client.close()
    await serving.until(lambda: len(serving.connections) == 0 and len(executed) == 100)
    assert executed == list(range(100))


async def test_a_client_that_closes_its_side_gets_the_answers_it_waits_for(serve: Serve) -> None:
    client = await (await serve()).connect()
    await client.send(A_REQUEST * 100)
    client.socket.shutdown(socket.SHUT_WR)
    for _ in range(100):
        await client.receive_frame()
    assert await client.is_closed()


async def test_an_idle_connection_is_closed_and_an_active_or_parked_one_is_not(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Fetch", lambda context, request: asyncio.get_running_loop().create_future())
    serving = await serve(handlers, connections_max_idle_ms="60000")
    idle, half_open, active, parked = [await serving.connect() for _ in range(4)]
    await parked.send_request("Fetch", FETCH_VERSION, FetchRequest())
    await half_open.send(A_REQUEST[:-1])
    await serving.until(lambda: sum(connection.buffered for connection in serving.connections) == len(A_REQUEST) - 1)
    serving.clock.advance(59_999)
    serving.server.tick()
    await active.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert len(serving.connections) == 4
    serving.clock.advance(1)
    serving.server.tick()
    assert await idle.is_closed()
    assert await half_open.is_closed()
    assert len(serving.connections) == 2
    assert serving.metrics.listener("PLAINTEXT").idle == 2
    await active.ask("Metadata", METADATA_VERSION, MetadataRequest())


async def test_a_connection_is_no_longer_idle_when_a_test_has_moved_the_clock(serve: Serve) -> None:
    serving = await serve(connections_max_idle_ms="60000")
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    serving.clock.advance(59_999)

    serving.clock.advance(3_600_000)
    serving.server.clock_moved(3_600)
    serving.server.tick()
    assert len(serving.connections) == 1
    serving.clock.advance(1)
    serving.server.tick()

    assert await client.is_closed()


async def test_a_client_that_sends_single_bytes_is_idle(serve: Serve) -> None:
    serving = await serve(connections_max_idle_ms="60000")
    client = await serving.connect()
    await serving.until(lambda: len(serving.connections) == 1)
    (connection,) = serving.connections
    for count, byte in enumerate(A_REQUEST[:6], 1):
        await client.send(bytes([byte]))
        await serving.until(lambda count=count: connection.buffered == count)
        serving.clock.advance(10_000)
    serving.server.tick()
    assert await client.is_closed()


async def test_a_client_that_never_reads_its_answers_is_idle(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: MetadataResponse(cluster_id="x" * 30_000))
    serving = await serve(handlers, connections_max_idle_ms="60000", socket_send_buffer_bytes="102400")
    client = await serving.connect(receive_buffer=4096)
    await client.send(A_REQUEST * 500)
    await serving.until(lambda: any(not (found.is_reading or found.is_busy) for found in serving.connections))
    serving.clock.advance(60_000)
    serving.server.tick()
    assert len(serving.connections) == 0


async def test_without_an_idle_limit_nothing_is_idle(serve: Serve) -> None:
    serving = await serve(connections_max_idle_ms="-1")
    client = await serving.connect()
    await serving.until(lambda: len(serving.connections) == 1)
    serving.clock.advance(10**12)
    serving.server.tick()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())


async def test_an_interruption_closes_connections_and_ends_their_requests_and_new_ones_wait(serve: Serve) -> None:
    handlers, states = default_handlers(), ["new"]

    async def wait_for_ever(*_: object) -> MetadataResponse:
        states.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            states.append("ended")
        raise AssertionError

    handlers.on("Metadata", wait_for_ever)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.until(lambda: states[-1] == "begun")

    await serving.connections.interrupt("a test")

    assert states[-1] == "ended"
    assert await client.is_closed()
    early = await serving.connect()
    await early.send_request("ApiVersions", 3, ApiVersionsRequest())
    await serving.until(lambda: len(serving.connections) == 1)
    assert not any(each.is_reading for each in serving.connections)
    serving.connections.resume()
    assert (await early.receive_response("ApiVersions", 3))[1].error_code == ErrorCode.NONE
