"""DescribeClientQuotas: filters over a set of quotas, and filters that are refused."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.handlers.quotas import ANY, DEFAULT, EXACT, describe, set_quota
from tests.wire import Wire

INVALID = ErrorCode.INVALID_REQUEST
QUOTAS: dict[str, list[tuple[str, str | None]]] = {
    "alice": [("user", "alice")],
    "alice, app": [("user", "alice"), ("client-id", "app")],
    "alice, every client": [("user", "alice"), ("client-id", None)],
    "every user": [("user", None)],
    "app": [("client-id", "app")],
    "address": [("ip", "192.0.2.7")],
}


async def set_all(wire: Wire) -> None:
    for number, parts in enumerate(QUOTAS.values(), 1):
        kind = "connection_creation_rate" if parts[0][0] == "ip" else "consumer_byte_rate"
        await set_quota(wire, parts, (kind, float(number)))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("components", "strict", "names"),
    [
        ([], False, list(QUOTAS)),
        ([], True, []),
        ([("user", EXACT, "alice")], False, ["alice", "alice, app", "alice, every client"]),
        ([("user", EXACT, "alice")], True, ["alice"]),
        ([("user", DEFAULT, None)], False, ["every user"]),
        ([("user", ANY, None)], True, ["alice", "every user"]),
        ([("user", EXACT, "alice"), ("client-id", ANY, None)], False, ["alice, app", "alice, every client"]),
        ([("client-id", DEFAULT, None)], False, ["alice, every client"]),
        ([("ip", ANY, None)], False, ["address"]),
        ([("user", EXACT, "bob")], False, []),
    ],
)
async def test_a_filter_finds_entities(
    wire: Wire, components: list[tuple[str, int, str | None]], strict: bool, names: list[str], version: int
) -> None:
    await set_all(wire)

    response = await wire.ask(describe(*components, strict=strict), version)

    values = {each.values[0].value for each in response.entries}
    assert (response.error_code, response.error_message or None) == (ErrorCode.NONE, None)
    assert {name for number, name in enumerate(QUOTAS, 1) if number in values} == set(names)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData("", ANY, None)], INVALID),
        ([ComponentData("team", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("x" * 32_000, ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
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
