from __future__ import annotations

import asyncio

from odradek.broker.broker import Broker
from odradek.broker.explain import Trace
from odradek.broker.explain.events import FileOperation, RequestAnswered, RequestReceived
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.requests import batch, create, fetch, fetch_request, parked, produce, produce_request
from tests.wire import Wire


def received(trace: Trace, api: str) -> RequestReceived:
    """The last request of this API."""
    return [each for each in trace.events if isinstance(each, RequestReceived) and each.exchange.api == api][-1]


def answered(trace: Trace, api: str) -> RequestAnswered:
    """The last answer of this API."""
    return [each for each in trace.events if isinstance(each, RequestAnswered) and each.exchange.api == api][-1]


async def test_a_produce_and_its_answer(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    trace.install()

    await produce(wire, "orders", batch(b"value"), acks=-1)

    request, answer = received(trace, "Produce"), answered(trace, "Produce")
    exchange = request.exchange
    assert answer.exchange is exchange
    assert (exchange.version, exchange.client_id, exchange.topics) == (9, "wire", ("orders",))
    assert exchange.correlation_id == wire.correlation_id
    assert exchange.peer[0] == "127.0.0.1"
    assert exchange.seconds is not None
    assert request.fields["acks"] == -1
    [shown] = request.fields["topic_data"][0]["partition_data"][0]["records"]
    assert shown["records"][0]["value"] == '"value"'
    assert answer.fields is not None
    assert answer.fields["responses"][0]["partition_responses"][0]["base_offset"] == 0


async def test_the_records_of_a_fetch_are_decoded(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    await produce(wire, "orders", batch(b"small"))
    await produce(wire, "orders", batch(b"first", b"x" * 200_000))  # sent as a part of the file
    trace.install()

    row = await fetch(wire, "orders")

    assert len(row.records) > 200_000
    answer = answered(trace, "Fetch")
    assert answer.fields is not None
    first, second = answer.fields["responses"][0]["partitions"][0]["records"]
    assert first["records"][0]["value"] == '"small"'
    assert second["records"][0]["value"] == '"first"'


async def test_a_fetch_that_waits_is_answered_later(broker: Broker, wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    trace.install()
    request = fetch_request("orders", max_wait_ms=60_000)
    await wire.send(request, 12)
    await parked(broker)

    assert str(trace.requests()[-1]).endswith(": waits")
    async with Wire("127.0.0.1", broker.port) as other:
        await produce(other, "orders", batch(b"woken"))
    await wire.receive(request, 12)

    answer = answered(trace, "Fetch").fields
    assert answer is not None
    assert answer["responses"][0]["partitions"][0]["records"][0]["records"][0]["value"] == '"woken"'


async def test_a_fetch_whose_client_disconnects_is_cancelled(broker: Broker, wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    trace.install()
    async with Wire("127.0.0.1", broker.port) as other:
        await other.send(fetch_request("orders", max_wait_ms=60_000), 12)
        await parked(broker)
    await parked(broker, 0)
    while trace.requests()[-1].seconds is None:  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)

    assert trace.requests()[-1].outcome == "cancelled"


async def test_a_produce_without_acknowledgement_has_no_answer(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    trace.install()

    await wire.send(produce_request("orders", batch(b"v"), acks=0), 9)
    await wire.ask(MetadataRequest([]), 12)

    assert answered(trace, "Produce").fields is None
    assert answered(trace, "Produce").exchange.outcome == "no answer"


async def test_the_errors_of_an_answer_are_named(wire: Wire, trace: Trace) -> None:
    trace.install()

    await produce(wire, "missing", batch(b"v"))

    assert answered(trace, "Produce").exchange.errors == ("UNKNOWN_TOPIC_OR_PARTITION",)


async def test_a_large_request_is_traced(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    trace.install()

    assert (await produce(wire, "orders", batch(b"x" * 900_000))).base_offset == 0

    [shown] = received(trace, "Produce").fields["topic_data"][0]["partition_data"][0]["records"]
    assert shown["records"][0]["value"].endswith("… (900000 bytes)")
    assert answered(trace, "Produce").exchange.errors == ()


async def test_only_the_requests_of_named_apis_and_what_they_cause(broker: Broker, wire: Wire) -> None:
    trace = Trace(broker, ["Produce"])
    trace.install()

    await create(wire, "orders")
    await produce(wire, "orders", batch(b"v"))
    await produce(wire, "orders", batch(b"x" * 900_000))  # written by another thread
    await fetch(wire, "orders")

    assert {each.api for each in trace.requests()} == {"Produce"}
    operations = [each for each in trace.events if isinstance(each, FileOperation)]
    writes = [
        (each.path, each.cause) for each in operations if each.operation == "write" and each.path.endswith(".log")
    ]
    assert writes == [("orders-0/00000000000000000000.log", number) for number in (1, 2)]
    assert {each.cause for each in operations} == {1, 2}


async def test_a_brief_trace_has_a_line_for_each_request(broker: Broker, wire: Wire) -> None:
    trace = Trace(broker, brief=True)
    await create(wire, "orders")
    trace.install()

    await produce(wire, "orders", batch(b"v"))
    await produce(wire, "missing", batch(b"v"))
    await wire.ask(fetch_request("orders", offset=1, max_wait_ms=1), 12)

    assert list(trace.events) == trace.requests()
    lines = str(trace).splitlines()
    assert [line.partition(" after ")[0].partition(' "wire" ')[2] for line in lines] == [
        "of orders: answered",
        "of missing: answered UNKNOWN_TOPIC_OR_PARTITION",
        "of orders: answered",
    ]
