from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.wire import Wire


@pytest.mark.parametrize("version", range(4))
@pytest.mark.usefixtures("only_here")  # on Apache Kafka there is one soon
async def test_there_is_no_coordinator_yet(wire: Wire, version: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(key="g"), version)

    assert (response.error_code, response.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert (response.host, response.port) == ("", -1)


@pytest.mark.parametrize("version", range(4, 7))
@pytest.mark.usefixtures("only_here")
async def test_nor_for_several_keys(wire: Wire, version: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "b"]), version)

    found = [(each.key, each.error_code, each.node_id) for each in response.coordinators]
    assert found == [(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, -1) for key in ("a", "b")]


@pytest.mark.parametrize("version", [1, 3])
async def test_a_key_type_that_does_not_exist(wire: Wire, version: int) -> None:
    response = await wire.ask(FindCoordinatorRequest(key="g", key_type=9), version)

    assert response.error_code == ErrorCode.INVALID_REQUEST
