from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.wire import Wire


@pytest.mark.parametrize("node_id", [7, -1])
async def test_an_unknown_broker(wire: Wire, node_id: int) -> None:
    response = await wire.ask(UnregisterBrokerRequest(node_id), 0)

    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert str(node_id) in response.error_message


@pytest.mark.usefixtures("only_here")  # it takes itself out of the cluster
async def test_a_running_broker_is_not_removed(wire: Wire) -> None:
    assert (await wire.ask(UnregisterBrokerRequest(1), 0)).error_code == ErrorCode.INVALID_REQUEST
