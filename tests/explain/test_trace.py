from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.broker.explain import Trace
from odradek.broker.explain.events import RequestReceived, TraceEvent
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire


async def ask(wire: Wire, count: int) -> None:
    for _ in range(count):
        await wire.ask(MetadataRequest([]), 12)


async def test_the_oldest_events_are_dropped(broker: Broker, wire: Wire) -> None:
    trace = Trace(broker, max_events=4)
    trace.install()

    await ask(wire, 5)

    assert [each.number for each in trace.requests()] == [4, 5]
    assert len(trace.events) == 4
    assert trace.dropped == 6
    assert str(trace).startswith("… 6 earlier events were dropped\n")


async def test_events_have_a_limit_in_bytes(broker: Broker, wire: Wire) -> None:
    seen: list[TraceEvent] = []
    trace = Trace(broker, max_bytes=20_000, sink=seen.append)
    await create(wire, "orders")
    trace.install()

    for _ in range(20):
        await produce(wire, "orders", batch(b"x" * 1000))

    assert 2 < len(trace.events) < 30
    assert trace.dropped == len(seen) - len(trace.events)


async def test_a_brief_trace_has_the_same_limits(broker: Broker, wire: Wire) -> None:
    traces = [Trace(broker, brief=True, max_events=2), Trace(broker, brief=True, max_bytes=6000)]
    for each in traces:
        each.install()

    await ask(wire, 5)

    assert [[one.number for one in each.requests()] for each in traces] == [[4, 5], [3, 4, 5]]
    assert [each.dropped for each in traces] == [3, 2]


async def test_the_last_requests(wire: Wire, trace: Trace) -> None:
    trace.install()

    await ask(wire, 30)

    assert [each.number for each in trace.requests(last=2)] == [29, 30]
    assert len(trace.requests()) == 20
    assert trace.requests(last=0) == []


async def test_events_stay_after_removal_until_they_are_cleared(wire: Wire, trace: Trace) -> None:
    trace.install()
    await ask(wire, 1)
    trace.remove()
    await ask(wire, 1)

    assert len(trace.requests()) == 1
    trace.clear()
    assert not trace.events
    assert str(trace) == ""


async def test_installing_again_records_once(wire: Wire, trace: Trace) -> None:
    trace.install()
    await ask(wire, 1)
    trace.install()
    await ask(wire, 1)

    assert [each.number for each in trace.requests()] == [1, 2]


async def test_removing_twice_does_no_harm(wire: Wire, trace: Trace) -> None:
    trace.install()
    trace.remove()
    trace.remove()

    await ask(wire, 1)
    assert not trace.events


async def test_two_traces_see_the_same(broker: Broker, wire: Wire) -> None:
    traces = [Trace(broker), Trace(broker), Trace(broker, brief=True)]
    for each in traces:
        each.install()

    await ask(wire, 2)

    assert [len(each.requests()) for each in traces] == [2, 2, 2]


async def test_a_sink_gets_each_event(broker: Broker, wire: Wire) -> None:
    seen: list[TraceEvent] = []
    trace = Trace(broker, max_events=1, sink=seen.append)
    trace.install()

    await ask(wire, 2)

    assert len(seen) == 4
    assert isinstance(seen[0], RequestReceived)


@pytest.mark.parametrize(
    ("name", "hint"), [("Produse", "; did you mean Produce?"), ("fetsh", "; did you mean Fetch?"), ("%%", "")]
)
def test_an_unknown_api_is_refused_with_the_nearest_name(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"^no API is called '{name}'{hint.replace('?', '[?]')}$"):
        Trace(Broker(), [name])


async def test_apis_may_be_named_as_their_modules(broker: Broker, wire: Wire) -> None:
    trace = Trace(broker, ["api_versions", "Metadata"])
    trace.install()

    await ask(wire, 1)

    assert [each.api for each in trace.requests()] == ["Metadata"]


async def test_of_a_reader_only_changes_are_recorded(broker: Broker, wire: Wire) -> None:
    await create(wire, "orders")
    everybody = Trace(broker)
    everybody.install()
    await ask(wire, 1)
    [client_id] = [each.client_id for each in everybody.requests()]
    assert client_id is not None
    traces = [Trace(broker, reader=client_id), Trace(broker, reader="another")]
    for each in traces:
        each.install()

    await ask(wire, 1)
    await produce(wire, "orders", batch(b"x"))

    assert [[one.api for one in each.requests()] for each in traces] == [["Produce"], ["Metadata", "Produce"]]
