"""SASL, on a listener without it."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.wire import Wire

ILLEGAL = ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("version", [0, 1])
async def test_a_handshake_offers_no_mechanism(wire: Wire, version: int) -> None:
    response = await wire.ask(SaslHandshakeRequest("PLAIN"), version)

    assert (response.error_code, response.mechanisms) == (ILLEGAL, [])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_authentication_is_refused(wire: Wire, version: int) -> None:
    response = await wire.ask(SaslAuthenticateRequest(b"\0user\0password"), version)

    assert (response.error_code, response.auth_bytes) == (ILLEGAL, b"")
    assert response.error_message


async def test_the_connection_stays_usable(wire: Wire) -> None:
    await wire.ask(SaslHandshakeRequest("PLAIN"), 1)

    assert (await wire.ask(MetadataRequest(None), 9)).brokers != []
