from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.requests import new_producer_id
from tests.wire import Wire


@pytest.mark.parametrize("version", range(6))
async def test_every_request_gets_an_id_of_its_own(wire: Wire, version: int) -> None:
    before = await new_producer_id(wire)

    response = await wire.ask(InitProducerIdRequest(None), version)

    assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
    assert response.producer_id > before


async def test_ids_are_not_reused_after_a_restart(tmp_path: object) -> None:
    properties = {"log.dirs": str(tmp_path)}
    ids = []
    for _ in range(2):
        async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
            ids += [await new_producer_id(wire) for _ in range(3)]

    assert len(set(ids)) == 6


async def test_an_empty_transactional_id_is_refused(wire: Wire) -> None:
    response = await wire.ask(InitProducerIdRequest(""), 4)

    assert (response.error_code, response.producer_id, response.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)
