from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.wire import Wire


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_brokers_the_controller_and_the_cluster(wire: Wire, version: int) -> None:
    response = await wire.ask(DescribeClusterRequest(), version)

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.endpoint_type, response.controller_id, len(response.cluster_id)) == (1, 1, 22)
    assert response.cluster_authorized_operations == -0x80000000
    [broker] = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "127.0.0.1", wire.port, None)
    assert not broker.is_fenced


async def test_authorized_operations_are_included_on_request(wire: Wire) -> None:
    response = await wire.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 2)

    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_endpoints_of_controllers_are_refused(wire: Wire, endpoint_type: int, code: ErrorCode) -> None:
    response = await wire.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)

    assert response.error_code == code
    assert response.error_message
    assert response.brokers == []
