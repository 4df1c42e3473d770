"""Long requests run in slices; requests that are too large are refused."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Generator
from typing import Any

import pytest

from odradek.broker.request.context import RequestContext
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.api import by_name
from odradek.protocol.code_generation.codec_parts import MAX_ROWS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.server.serving import METADATA_VERSION, PRODUCE_VERSION, Serve, default_handlers, framed_request

LARGE = MetadataRequest([MetadataRequestTopic(name=f"topic-{index:06d}") for index in range(10_000)])
"""Some 150 kB."""


class TickingClock(ManualClock):
    """A clock that advances with each reading, so that every slice is over after its first step."""

    def monotonic(self) -> float:
        self.advance(3)
        return super().monotonic()


class Steps:
    """A handler of Metadata whose work takes `count` slices; `done` of them are over."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.done = 0
        self.ended = False

    def handle(self, context: RequestContext, request: Any) -> Generator[None, None, MetadataResponse]:
        try:
            for _ in range(self.count):
                self.done += 1
                yield
            return MetadataResponse(cluster_id="long", topics=[MetadataResponseTopic(name="t") for _ in range(10_000)])
        finally:
            self.ended = True


def large_produce(partitions: int) -> ProduceRequest:
    rows = [PartitionProduceData(index, None) for index in range(partitions)]
    return ProduceRequest(acks=1, topic_data=[TopicProduceData("t", partition_data=rows)])


async def test_others_are_answered_between_two_slices_of_a_long_request(serve: Serve) -> None:
    work, handlers = Steps(1_000_000), default_handlers()
    handlers.on("Metadata", work.handle)
    serving = await serve(handlers, clock=TickingClock())
    busy, other = await serving.connect(), await serving.connect()

    await busy.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.until(lambda: work.done > 10)
    await other.ask("ApiVersions", 3, ApiVersionsRequest())

    assert not work.ended


async def test_long_requests_share_one_slice_a_turn(serve: Serve) -> None:
    work, handlers = Steps(1_000_000), default_handlers()
    handlers.on("Metadata", work.handle)
    serving = await serve(handlers, clock=TickingClock())
    for client in [await serving.connect() for _ in range(10)]:
        await client.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.until(lambda: work.done > 100)

    before = work.done
    for _ in range(100):
        await asyncio.sleep(0)

    assert work.done - before <= 101


async def test_work_that_ends_in_its_first_slice_needs_no_task(serve: Serve) -> None:
    work, handlers = Steps(3), default_handlers()
    handlers.on("Metadata", work.handle)
    serving = await serve(handlers)
    client = await serving.connect()

    response = await client.ask("Metadata", METADATA_VERSION, MetadataRequest())

    assert response.cluster_id == "long"
    assert serving.metrics.requests_in_flight == 0


@pytest.mark.parametrize("clock", [ManualClock(), TickingClock()], ids=["at once", "in slices"])
async def test_long_answers_and_large_requests_are_whole(serve: Serve, clock: ManualClock) -> None:
    work, handlers = Steps(5), default_handlers()
    received: list[MetadataRequest] = []

    def handle(context: RequestContext, request: MetadataRequest) -> Generator[None, None, MetadataResponse]:
        received.append(request)
        return work.handle(context, request)

    handlers.on("Metadata", handle)
    serving = await serve(handlers, clock=clock)
    client = await serving.connect()

    response = await client.ask("Metadata", METADATA_VERSION, LARGE)
    again = await client.ask("ApiVersions", 3, ApiVersionsRequest())

    assert received == [LARGE]
    assert len(response.topics) == 10_000
    assert again.error_code == ErrorCode.NONE
    assert serving.metrics.api("Metadata").errors[ErrorCode.NONE] >= 10_000
    assert serving.metrics.requests_in_flight == 0


async def test_an_error_of_long_work_is_the_answer(serve: Serve) -> None:
    handlers = default_handlers()

    def handle(context: RequestContext, request: MetadataRequest) -> Generator[None, None, MetadataResponse]:
        yield
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    handlers.on("Metadata", handle)
    client = await (await serve(handlers, clock=TickingClock())).connect()

    response = await client.ask("Metadata", METADATA_VERSION, MetadataRequest())

    assert response.topics[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("reset", [False, True])
async def test_long_work_ends_when_its_client_disconnects(
    serve: Serve, caplog: pytest.LogCaptureFixture, reset: bool
) -> None:
    work, handlers = Steps(1_000_000_000), default_handlers()
    handlers.on("Metadata", work.handle)
    serving = await serve(handlers, clock=TickingClock())
    client = await serving.connect()
    await client.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.until(lambda: work.done > 10)

    if reset:
        client.reset()
    else:
        client.close()
    await serving.until(lambda: work.ended)
    await serving.until(lambda: len(serving.connections) == 0)

    await serving.until(lambda: serving.metrics.requests_in_flight == 0)
    assert work.done < work.count
    assert not caplog.records


async def test_a_malformed_large_request_closes_its_connection(serve: Serve) -> None:
    serving = await serve(clock=TickingClock())
    client = await serving.connect()
    frame = framed_request("Metadata", METADATA_VERSION, LARGE)[4:-2]

    await client.send(struct.pack(">i", len(frame)) + frame)

    assert await client.is_closed()
    await serving.until(lambda: serving.metrics.requests_in_flight == 0)


async def test_a_request_with_too_many_rows_closes_its_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client = await (await serve()).connect()

    topics = [MetadataRequestTopic(name="")] * (MAX_ROWS + 1)
    await client.send_request("Metadata", METADATA_VERSION, MetadataRequest(topics))

    assert await client.is_closed()
    assert f"{MAX_ROWS} are the most" in caplog.text


async def test_a_produce_to_too_many_partitions_closes_its_connection(serve: Serve) -> None:
    client = await (await serve()).connect()
    await client.send_request("Produce", PRODUCE_VERSION, large_produce(MAX_ROWS + 1))
    assert await client.is_closed()


async def test_a_request_over_the_limit_is_refused_before_it_is_received(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client = await (await serve()).connect()

    await client.send(struct.pack(">ih", 1_048_577, by_name("Metadata").key) + bytes(100))

    assert await client.is_closed()
    assert "Metadata of 1048577 bytes is over socket.request.without.records.max.bytes=1048576" in caplog.text


async def test_the_limit_is_a_property(serve: Serve) -> None:
    serving = await serve(socket_request_without_records_max_bytes="2000")
    refused, client = await serving.connect(), await serving.connect()

    await refused.send_request("Metadata", METADATA_VERSION, MetadataRequest([MetadataRequestTopic(name="t")] * 1000))

    assert await refused.is_closed()
    assert (await client.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"


async def test_records_may_be_larger(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Produce", lambda context, request: ProduceResponse())
    client = await (await serve(handlers)).connect()
    data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, bytes(3_000_000))])]

    assert await client.ask("Produce", PRODUCE_VERSION, ProduceRequest(acks=1, topic_data=data)) == ProduceResponse()
