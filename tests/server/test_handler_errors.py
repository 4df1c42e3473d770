"""Exceptions of handlers: error responses, closed connections, log lines."""

from __future__ import annotations

import asyncio
import logging

import pytest

from odradek.broker.request.context import CloseConnection
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest
from tests.server.serving import (
    METADATA_VERSION,
    PRODUCE_VERSION,
    Serve,
    default_handlers,
    lines_of,
)


async def test_an_error_of_a_handler_becomes_the_apis_error_response(serve: Serve) -> None:
    handlers = default_handlers()

    def fail(context: object, request: MetadataRequest) -> MetadataResponse:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")

    handlers.on("Metadata", fail)
    serving = await serve(handlers)
    response = await (await serving.connect()).ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert response.cluster_id == "CLUSTER_AUTHORIZATION_FAILED: not you"
    assert serving.metrics.api("Metadata").errors == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 1}
    assert serving.metrics.unexpected_errors == 0


@pytest.mark.parametrize("parked", [False, True])
async def test_an_unexpected_error_is_logged_counted_and_answered_without_details(
    serve: Serve, caplog: pytest.LogCaptureFixture, parked: bool
) -> None:
    handlers = default_handlers()

    def fail(context: object, request: MetadataRequest) -> MetadataResponse:
        raise ZeroDivisionError("secret")

    async def fail_later(context: object, request: MetadataRequest) -> MetadataResponse:
        await asyncio.sleep(0)
        raise ZeroDivisionError("secret")

    handlers.on("Metadata", fail_later if parked else fail)
    serving = await serve(handlers)
    client = await serving.connect()
    response = await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert response.cluster_id == "UNKNOWN_SERVER_ERROR: "
    assert serving.metrics.unexpected_errors == 1
    assert serving.metrics.api("Metadata").errors == {ErrorCode.UNKNOWN_SERVER_ERROR: 1}
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "api=Metadata" in record.getMessage()
    assert record.exc_info is not None
    assert (await client.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id.startswith("UNKNOWN")


async def test_a_response_that_its_version_cannot_carry_is_an_unexpected_error(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: MetadataResponse(controller_id=2**40))
    serving = await serve(handlers)
    response = await (await serving.connect()).ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert response.cluster_id == "UNKNOWN_SERVER_ERROR: "
    assert serving.metrics.unexpected_errors == 1


@pytest.mark.parametrize("parked", [False, True])
async def test_a_handler_may_close_the_connection_instead_of_answering(
    serve: Serve, caplog: pytest.LogCaptureFixture, parked: bool
) -> None:
    handlers = default_handlers()

    def close(context: object, request: ProduceRequest) -> None:
        raise CloseConnection("acks=0 failed")

    async def close_later(context: object, request: ProduceRequest) -> None:
        await asyncio.sleep(0)
        raise CloseConnection("acks=0 failed")

    handlers.on("Produce", close_later if parked else close)
    client = await (await serve(handlers)).connect()
    await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest(acks=0))
    assert await client.is_closed()
    assert ["acks=0 failed" in line for line in lines_of(caplog)] == [True]


async def test_an_error_without_a_response_closes_the_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = default_handlers()

    def fail(context: object, request: ProduceRequest) -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    handlers.on("Produce", fail, lambda request, code, message: None)
    client = await (await serve(handlers)).connect()
    await client.send_request("Produce", PRODUCE_VERSION, ProduceRequest(acks=0))
    assert await client.is_closed()
    assert ["NOT_LEADER_OR_FOLLOWER" in line for line in lines_of(caplog)] == [True]
