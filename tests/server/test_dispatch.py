from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.apis.table import ROWS
from odradek.broker.clock import SystemClock
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.context import ConnectionContext
from odradek.broker.request.handler import Answer, ApiRow, Handle, Handler, Interceptor
from odradek.broker.server.dispatch import Dispatcher
from odradek.broker.server.routes import Answers
from odradek.protocol import header
from odradek.protocol.api import NAMES, by_key, by_name
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.header import LONGEST_REPEATED_HEADER
from odradek.protocol.messages.fetch import FetchRequest, ReplicaState

WIRE = Path(__file__).parent.parent / "protocol" / "data" / "wire"


def empty_handler(key: int) -> Handler:
    """Answers with the response whose fields all have their defaults."""
    api = by_key(key)

    def respond(*_: Any) -> Any:
        return api.response()

    return Handler(api, ROWS.get(key) or ApiRow("", api.min_version, api.max_version), respond, respond)


HANDLERS = {key: empty_handler(key) for key in NAMES}


def dispatcher(metrics: Metrics | None = None) -> Dispatcher:
    return Dispatcher(HANDLERS, None, metrics or Metrics(), SystemClock())


def connection() -> ConnectionContext:
    return ConnectionContext("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 50000))


def exchanges() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(WIRE.glob("*.json"))]


def answer(frame: bytes, using: Dispatcher | None = None) -> bytes:
    answers = Answers(0.0)
    assert (using or dispatcher()).dispatch(memoryview(bytearray(frame)), connection(), answers) is None
    return bytes(answers.out)


@pytest.mark.parametrize("name", ["ApiVersions_v5_0.json", "ApiVersions_v5_1.json"])
def test_an_unknown_version_is_answered_as_by_apache_kafka(name: str) -> None:
    exchange = json.loads((WIRE / name).read_text())
    response = bytes.fromhex(exchange["response"])
    assert answer(bytes.fromhex(exchange["request"])) == struct.pack(">i", len(response)) + response


def test_every_request_that_real_clients_sent_is_served_under_its_correlation_id() -> None:
    shared = dispatcher()
    served = 0
    for exchange in exchanges():
        if exchange["api_version"] > HANDLERS[exchange["api_key"]].row.max_version:
            continue
        request = bytes.fromhex(exchange["request"])
        frame = answer(request, shared)
        assert frame[4:8] == request[4:8]
        assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
        served += 1
    assert served > 100


def test_a_repeated_request_gets_the_same_answer() -> None:
    shared, context = dispatcher(), connection()
    for exchange in exchanges():
        if exchange["api_version"] > HANDLERS[exchange["api_key"]].row.max_version:
            continue
        request = bytearray.fromhex(exchange["request"])
        answers = [Answers(0.0), Answers(0.0)]
        for correlation_id, turn in enumerate(answers):
            struct.pack_into(">i", request, 4, correlation_id)
            assert shared.dispatch(memoryview(request), context, turn) is None
            struct.pack_into(">i", turn.out, 4, 0)
        assert answers[0].out == answers[1].out


def test_an_unusually_long_header_is_not_stored() -> None:
    context = connection()
    request = header.encode_request_header(header.RequestHeader(18, 0, 1, "c" * LONGEST_REPEATED_HEADER), 1)
    dispatcher().dispatch(memoryview(request), context, Answers(0.0))
    assert context.last_header is None


def test_responses_of_one_turn_stand_one_after_the_other() -> None:
    exchange = json.loads((WIRE / "Metadata_v12_0.json").read_text())
    request = memoryview(bytearray.fromhex(exchange["request"]))
    together, alone = Answers(0.0), answer(bytes(request))
    shared = dispatcher()
    for _ in range(3):
        shared.dispatch(request, connection(), together)
    assert bytes(together.out) == alone * 3
    assert len(together.answered) == 3


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_answered_or_a_protocol_error(frame: bytes) -> None:
    try:
        dispatcher().dispatch(memoryview(bytearray(frame)), connection(), Answers(0.0))
    except RemoteProtocolError:
        return


@given(st.data())
def test_a_mutated_request_is_answered_or_a_protocol_error(data: st.DataObject) -> None:
    exchange = data.draw(st.sampled_from(exchanges()))
    frame = bytearray.fromhex(exchange["request"])
    for _ in range(data.draw(st.integers(1, 5))):
        position = data.draw(st.integers(0, len(frame) - 1))
        frame[position] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(len(frame) // 2, len(frame))) :]
    try:
        dispatcher().dispatch(memoryview(frame), connection(), Answers(0.0))
    except RemoteProtocolError:
        return


@pytest.mark.parametrize(
    ("version", "request_", "name"),
    [
        (12, FetchRequest(replica_id=-1), "FetchConsumer"),
        (12, FetchRequest(replica_id=2), "FetchFollower"),
        (16, FetchRequest(), "FetchConsumer"),
        (16, FetchRequest(replica_state=ReplicaState(2, 1)), "FetchFollower"),
    ],
)
def test_fetches_of_followers_are_counted_separately(version: int, request_: FetchRequest, name: str) -> None:
    metrics = Metrics()
    key = by_name("fetch").key
    answer(bytes(header.encode_request(header.RequestHeader(key, version, 1), request_)), dispatcher(metrics))
    assert {api.name: api.requests for api in metrics.apis.values() if api.requests} == {name: 1}


def test_a_handler_is_looked_up_by_its_first_request() -> None:
    looked_up: list[int] = []

    class Lazy(dict[int, Handler]):
        def get(self, key: int, default: Any = None) -> Any:
            looked_up.append(key)
            return super().get(key, default)

    using = Dispatcher(Lazy(HANDLERS), None, Metrics(), SystemClock())
    request = bytes.fromhex(json.loads((WIRE / "Metadata_v12_0.json").read_text())["request"])
    assert looked_up == []
    answer(request, using)
    answer(request, using)
    assert looked_up == [3]


def test_interceptors_see_all_requests_while_they_are_there() -> None:
    using = dispatcher()
    frame = struct.pack(">hhih", 18, 0, 7, -1)  # ApiVersions 0
    seen: list[str] = []

    def named(name: str) -> Interceptor:
        def intercept(handler: Handler) -> Handle:
            def handle(*arguments: Any) -> Answer:
                seen.append(name)
                return handler.handle(*arguments)

            return handle

        return intercept

    outer, inner = named("outer"), named("inner")
    expected = answer(frame, using)
    using.routes.add_interceptor(outer, outermost=True)
    using.routes.add_interceptor(inner)

    assert answer(frame, using) == expected
    assert seen == ["outer", "inner"]
    using.routes.remove_interceptor(outer)
    using.routes.remove_interceptor(inner)
    assert answer(frame, using) == expected
    assert len(seen) == 2
