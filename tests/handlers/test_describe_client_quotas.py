"""DescribeClientQuotas, on a broker without quotas."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.wire import Wire

INVALID = ErrorCode.INVALID_REQUEST
EXACT, DEFAULT, ANY = 0, 1, 2


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "components",
    [
        [],
        [ComponentData("user", EXACT, "u"), ComponentData("client-id", DEFAULT, None)],
        [ComponentData("ip", ANY, None)],
    ],
)
async def test_there_are_none(wire: Wire, components: list[ComponentData], version: int) -> None:
    response = await wire.ask(DescribeClientQuotasRequest(components, strict=True), version)

    assert (response.error_code, response.entries) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData("", ANY, None)], INVALID),
        ([ComponentData("team", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("user", 5, "u")], INVALID),
        ([ComponentData("user", EXACT, None)], INVALID),
        ([ComponentData("user", DEFAULT, "u")], INVALID),
        ([ComponentData("user", ANY, "u")], INVALID),
        ([ComponentData("user", ANY, None), ComponentData("user", EXACT, "u")], INVALID),
        ([ComponentData("ip", ANY, None), ComponentData("user", EXACT, "u")], INVALID),
    ],
)
async def test_an_invalid_filter_is_refused(wire: Wire, components: list[ComponentData], code: ErrorCode) -> None:
    response = await wire.ask(DescribeClientQuotasRequest(components), 1)

    assert (response.error_code, response.entries) == (code, None)
    assert response.error_message
