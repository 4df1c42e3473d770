"""What the tests of exchanges share: running one until it fails, and a validator of one token."""

from __future__ import annotations

import pytest

from odradek.broker.security.authentication.exchange import AuthenticationFailed, Exchange
from odradek.broker.security.authentication.tokens.validator import INSUFFICIENT_SCOPE, InvalidToken, ValidToken
from odradek.protocol.sasl.oauthbearer import ClientInitialResponse


async def step(exchange: Exchange, token: bytes) -> bytes:
    """Pass a token to an exchange of any mechanism."""
    answer = exchange.step(token)
    return answer if isinstance(answer, bytes) else await answer


async def failure(exchange: Exchange, *tokens: bytes) -> AuthenticationFailed:
    """Pass tokens to an exchange whose last step must fail, and no step after it must succeed; return the failure."""
    for token in tokens[:-1]:
        await step(exchange, token)
        assert exchange.principal is None
    with pytest.raises(AuthenticationFailed) as raised:
        await step(exchange, tokens[-1])
    for token in tokens:  # no second try
        with pytest.raises(AuthenticationFailed):
            await step(exchange, token)
    assert exchange.principal is None
    assert exchange.expires_at_ms is None
    return raised.value


class OneToken:
    """Accepts the token `right` of alice."""

    async def validate(self, token: str) -> ValidToken:
        if token == "right":
            return ValidToken("alice", 123_456, frozenset({"kafka"}))
        if token == "scopeless":
            raise InvalidToken("no scope", INSUFFICIENT_SCOPE, "[kafka]")
        raise InvalidToken("not the one token")

    def claimed_name(self, token: str) -> str:
        return f"claimed by {token}"


def token_message(token: str, authorization_id: str = "") -> bytes:
    return ClientInitialResponse(token, authorization_id, (("traceId", "1"),)).encode()
