from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.handlers.requests import create
from tests.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([TOPIC], {(TOPIC, "a"), (TOPIC, "b")}),
        ([BROKER], {(BROKER, "1")}),
        ([CLIENT_METRICS, GROUP], set()),
        ([TOPIC, BROKER, TOPIC], {(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1")}),
        ([], {(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1"), (BROKER_LOGGER, "1")}),
    ],
)
async def test_resources_with_properties_are_listed(
    wire: Wire, kinds: list[int], expected: set[tuple[int, str]]
) -> None:
    for name in ("a", "b"):
        await create(wire, name)

    response = await wire.ask(ListConfigResourcesRequest(kinds), 1)

    found = [(each.resource_type, each.resource_name) for each in response.config_resources]
    assert response.error_code == ErrorCode.NONE
    assert sorted(found) == sorted(expected)


async def test_the_first_version_lists_client_metrics(wire: Wire) -> None:
    await create(wire, "a")

    response = await wire.ask(ListConfigResourcesRequest(), 0)

    assert (response.error_code, response.config_resources) == (ErrorCode.NONE, [])


async def test_unknown_types_are_refused(wire: Wire) -> None:
    response = await wire.ask(ListConfigResourcesRequest([3]), 1)

    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
