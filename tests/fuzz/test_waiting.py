"""`waiting` has a kind of request for every API, and each of them leaves a broker that serves others meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odradek.broker.apis.table import ROWS
from odradek.broker.broker import Broker
from odradek.protocol.api import by_key
from odradek.protocol.header import read_request_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.fuzz.attack import Attacker, Endpoint
from tests.fuzz.waiting import every_kind
from tests.fuzz.worst_requests import Worst
from tests.wire import Wire

SIZE = 20_000
PIPELINED = 8
KINDS = every_kind(SIZE / 1_000_000)


def _apis(worst: Worst) -> set[int]:
    """The APIs of the requests of a kind; those that follow an answer are named by the kind's name."""
    named = {key for key in ROWS if worst.name.startswith(by_key(key).name)}
    return named | {read_request_header(memoryview(worst.frame(1000))[4:])[0]}


def test_every_api_has_a_kind() -> None:
    covered = set().union(*map(_apis, KINDS))
    assert {by_key(key).name for key in ROWS if key not in covered} == set()


class _Until:
    """Set once the attacker has met the broker as often as it has requests unanswered, by an answer or a close."""

    attacker: Attacker

    def is_set(self) -> bool:
        return self.attacker.answered + self.attacker.closed > PIPELINED


@pytest.mark.fuzz
@pytest.mark.parametrize("worst", KINDS, ids=lambda worst: worst.name)
async def test_others_are_served_during_pipelined_requests(broker: Broker, worst: Worst) -> None:
    until = _Until()
    until.attacker = Attacker(Endpoint("PLAINTEXT", "127.0.0.1", broker.port, Path()), worst, SIZE, PIPELINED)
    served = 0
    async with Wire("127.0.0.1", broker.port) as victim:
        attacking = asyncio.ensure_future(until.attacker.run(until))
        while not attacking.done():
            await victim.ask(ApiVersionsRequest("victim", "1"), 3)
            served += 1
        answered, closed = await attacking
        await victim.ask(ApiVersionsRequest("victim", "1"), 3)
    assert answered + closed > PIPELINED
    assert served > 1
