"""Delegation tokens, which there are none of."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from odradek.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.wire import Wire

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_none_is_made(wire: Wire, version: int) -> None:
    created = await wire.ask(CreateDelegationTokenRequest(max_lifetime_ms=1000), version)

    assert (created.error_code, created.token_id, created.hmac) == (NOT_ALLOWED, "", b"")
    assert (created.principal_type, created.principal_name) == ("User", "ANONYMOUS")
    assert (created.issue_timestamp_ms, created.expiry_timestamp_ms, created.max_timestamp_ms) == (-1, -1, -1)


async def test_none_is_made_for_another_user(wire: Wire) -> None:
    created = await wire.ask(CreateDelegationTokenRequest("User", "x", max_lifetime_ms=1000), 3)

    assert (created.error_code, created.principal_name) == (NOT_ALLOWED, "x")
    assert created.token_requester_principal_name == "ANONYMOUS"


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_none_is_shown(wire: Wire, version: int) -> None:
    described = await wire.ask(DescribeDelegationTokenRequest(None), version)

    assert (described.error_code, described.tokens) == (NOT_ALLOWED, [])


@pytest.mark.parametrize("version", [1, 2])
async def test_none_is_renewed_or_expired(wire: Wire, version: int) -> None:
    renewed = await wire.ask(RenewDelegationTokenRequest(b"hmac", 1000), version)
    expired = await wire.ask(ExpireDelegationTokenRequest(b"hmac", 1000), version)

    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
    assert (expired.error_code, expired.expiry_timestamp_ms) == (NOT_ALLOWED, -1)


async def test_a_client_that_has_authenticated_is_told_that_they_are_disabled(secured: Broker) -> None:
    async with Wire("127.0.0.1", secured.port, "alice") as alice:
        created = await alice.ask(CreateDelegationTokenRequest(max_lifetime_ms=1000), 3)
        renewed = await alice.ask(RenewDelegationTokenRequest(b"hmac", 1000), 2)
        expired = await alice.ask(ExpireDelegationTokenRequest(b"hmac", 1000), 2)
        described = await alice.ask(DescribeDelegationTokenRequest(None), 3)

    codes = {answer.error_code for answer in (created, renewed, expired, described)}
    assert codes == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}
    assert (created.principal_name, created.token_requester_principal_name) == ("alice", "alice")
