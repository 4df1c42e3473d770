"""Every order of requests before a client has authenticated; `sasl_orders` is compared with Kafka, too."""

from __future__ import annotations

from typing import Any

from odradek.protocol import header
from odradek.protocol.api import Api, by_key
from odradek.protocol.schema import spec
from tests.effort import some
from tests.peers.sasl_orders import STEPS, expected, orders, seen
from tests.peers.sasl_scripts import CLOSED, Ask, Bare, Step, play
from tests.security.raw.guarded import Guarded, bare, frames_in, half_close, rest_of
from tests.server.serving import framed_request

LONGEST = 5
ORDERS = sorted(orders(LONGEST))


def test_the_orders_are_many() -> None:
    assert len(ORDERS) > 100
    assert {len(names) for names in ORDERS} == set(range(1, LONGEST + 1))
    assert any(CLOSED not in expected(names) for names in ORDERS)


async def test_every_order_is_answered_as_the_states_say(guarded: Guarded) -> None:
    for names in some(ORDERS):
        answers = await play("127.0.0.1", guarded.broker.ports["CLEAR"], [STEPS[name] for name in names])
        assert seen(answers) == expected(names), names
    await guarded.alone()


def api_of(step: Ask) -> Api:
    key = spec(type(step.request)).key
    assert key is not None
    return by_key(key)


def framed(step: Step) -> bytes:
    if isinstance(step, Ask):
        return framed_request(api_of(step).name, step.version, step.request)
    assert isinstance(step, Bare)
    return bare(step.token)


def answer_of(step: Step, frame: bytes) -> object:
    if not isinstance(step, Ask):
        return frame
    response: Any = header.decode_response(api_of(step).key, step.version, frame)[1]
    return response.error_code


async def test_requests_that_are_sent_at_once_are_answered_as_one_by_one(guarded: Guarded) -> None:
    for names in some(ORDERS):
        client = await guarded.connect()
        await client.send(b"".join(framed(STEPS[name]) for name in names))
        half_close(client)
        answers = frames_in(await rest_of(client))
        shown = [answer_of(STEPS[name], frame) for name, frame in zip(names, answers, strict=False)]
        assert shown == [each for each in expected(names) if each != CLOSED], names
        client.close()
    await guarded.alone()
