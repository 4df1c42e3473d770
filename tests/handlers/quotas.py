"""Requests for client quotas, in short."""

from __future__ import annotations

from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.wire import Wire

EXACT, DEFAULT, ANY = 0, 1, 2

Part = tuple[str, str | None]


def entry(parts: list[Part], *limits: tuple[str, float | None]) -> RequestEntryData:
    """One entity and its new limits; None removes one."""
    ops = [OpData(kind, value or 0.0, value is None) for kind, value in limits]
    return RequestEntryData([EntityData(*part) for part in parts], ops)


def alter(
    parts: list[Part], *limits: tuple[str, float | None], validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest([entry(parts, *limits)], validate_only)


def describe(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest([ComponentData(*each) for each in components], strict)


async def set_quota(wire: Wire, parts: list[Part], *limits: tuple[str, float | None]) -> None:
    """Set limits. Raises AssertionError if that is refused."""
    (row,) = (await wire.ask(alter(parts, *limits), 1)).entries
    assert not row.error_code, row.error_message
