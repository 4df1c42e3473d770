from __future__ import annotations

import asyncio
from collections.abc import Generator
from itertools import count
from typing import Any

import pytest

from odradek.broker.apis.table import HandlerTable
from odradek.broker.explain.brief import BriefTracing
from odradek.broker.explain.calls import Call
from odradek.broker.explain.events import Exchange
from odradek.broker.explain.exchanges import Exchanges
from odradek.broker.explain.requests import RequestTracing
from odradek.broker.request.context import CloseConnection, ConnectionContext, RequestContext
from odradek.broker.request.time_slices import is_steps
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.api import by_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.produce import ProduceResponse
from tests.handlers.requests import batch, produce_request

CONTEXT = RequestContext(12, 4, 9, "client", 0.0, ConnectionContext("PLAINTEXT", ("h", 1), ("10.0.0.1", 2)))
RESPONSE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


@pytest.fixture
def call() -> Call:
    exchanges = Exchanges(by_name("Heartbeat"), ManualClock(), lambda _: None, count(1))
    return Call(exchanges, exchanges.begin(CONTEXT, HeartbeatRequest("readers")), HeartbeatResponse, 0.0)


def raising(error: BaseException) -> Any:
    def function() -> Any:
        raise error

    return function


def test_an_exchange_has_the_header_and_the_group(call: Call) -> None:
    exchange = call.exchange

    assert (exchange.api, exchange.version, exchange.correlation_id) == ("Heartbeat", 4, 9)
    assert (exchange.peer, exchange.client_id, exchange.subject) == (("10.0.0.1", 2), "client", "readers")
    assert exchange.seconds is None


def test_a_response_is_returned_as_it_is(call: Call) -> None:
    assert call.watched(RESPONSE) is RESPONSE
    assert call.exchange.errors == ("REBALANCE_IN_PROGRESS",)
    assert call.exchange.seconds is not None


def test_no_response_is_said_to_be_none(call: Call) -> None:
    assert call.watched(None) is None
    assert call.exchange.outcome == "no answer"


async def test_a_future_is_returned_as_it_is_and_reported_when_it_is_done(call: Call) -> None:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    assert call.watched(future) is future
    assert call.exchange.seconds is None
    future.set_result(RESPONSE)
    await asyncio.sleep(0)
    assert call.exchange.errors == ("REBALANCE_IN_PROGRESS",)


async def test_a_future_that_is_cancelled_ends_the_exchange(call: Call) -> None:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    call.watched(future)

    future.cancel()
    await asyncio.sleep(0)
    assert call.exchange.outcome == "cancelled"


async def test_an_awaitable_is_awaited(call: Call) -> None:
    async def answer() -> HeartbeatResponse:
        await asyncio.sleep(0)
        return RESPONSE

    assert await call.watched(answer()) is RESPONSE
    assert call.exchange.errors == ("REBALANCE_IN_PROGRESS",)


async def test_the_error_of_an_awaitable_is_raised(call: Call) -> None:
    async def answer() -> HeartbeatResponse:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, "moved")

    with pytest.raises(KafkaError):
        await call.watched(answer())
    assert (call.exchange.errors, call.exchange.outcome) == (("NOT_COORDINATOR",), "moved")


def steps(result: Any, closed: list[bool]) -> Generator[None, None, Any]:
    try:
        yield
        yield
        return result
    finally:
        closed.append(True)


def finished(given: Generator[None, None, Any]) -> tuple[int, Any]:
    """The number of pauses, and the result."""
    for pauses in count():
        try:
            next(given)
        except StopIteration as end:
            return pauses, end.value
    raise AssertionError


def test_steps_pause_as_often_as_before(call: Call) -> None:
    given = call.watched(steps(RESPONSE, []))

    assert is_steps(given)
    assert finished(given) == (2, RESPONSE)
    assert call.exchange.errors == ("REBALANCE_IN_PROGRESS",)


async def test_steps_may_return_an_awaitable(call: Call) -> None:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    assert finished(call.watched(steps(future, [])))[1] is future
    assert call.exchange.seconds is None
    future.set_result(RESPONSE)
    await asyncio.sleep(0)
    assert call.exchange.errors == ("REBALANCE_IN_PROGRESS",)


def test_steps_that_are_closed_release_their_resources(call: Call) -> None:
    closed: list[bool] = []
    given = call.watched(steps(RESPONSE, closed))
    next(given)

    given.close()

    assert closed == [True]
    assert call.exchange.outcome == "cancelled"


@pytest.mark.parametrize(
    ("error", "errors", "outcome"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "why"), ("INVALID_REQUEST",), "why"),
        (CloseConnection("it lied"), (), "the connection is closed: it lied"),
        (asyncio.CancelledError(), (), "cancelled"),
        (ZeroDivisionError("oh"), ("UNKNOWN_SERVER_ERROR",), "ZeroDivisionError: oh"),
    ],
)
def test_errors_of_a_handler_are_raised_and_reported(
    call: Call, error: BaseException, errors: tuple[str, ...], outcome: str
) -> None:
    with pytest.raises(type(error)):
        call.run(raising(error))

    assert (call.exchange.errors, call.exchange.outcome) == (errors, outcome)
    assert call.exchange.seconds is not None


def test_an_exchange_is_a_line(call: Call) -> None:
    exchange: Exchange = call.exchange
    assert str(exchange).endswith('Heartbeat v4 from 10.0.0.1:2 "client" for readers: waits')

    call.answered(RESPONSE)
    assert "answered REBALANCE_IN_PROGRESS after " in str(exchange)


@pytest.mark.parametrize("tracing", [BriefTracing, RequestTracing])
def test_no_trace_refers_to_the_buffer_of_a_request(tracing: type[BriefTracing | RequestTracing]) -> None:
    recorded: list[Any] = []
    handler = HandlerTable()[0]._replace(handle=lambda *_: ProduceResponse())
    handle = tracing(recorded.append, ManualClock(), lambda _: None, None, count(1))(handler)
    buffer = bytearray(batch(b"value"))

    handle(None, CONTEXT, produce_request("orders", memoryview(buffer)))

    assert recorded
    buffer.clear()  # a view would refuse it
