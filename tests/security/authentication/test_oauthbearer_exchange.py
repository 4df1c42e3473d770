from __future__ import annotations

import pytest

from odradek.broker.security.authentication.exchange import AuthenticationFailed
from odradek.broker.security.authentication.oauthbearer_exchange import OauthBearerExchange
from odradek.broker.security.principal import Principal
from odradek.protocol.sasl.oauthbearer import ACKNOWLEDGEMENT
from tests.security.authentication.exchanges import OneToken, failure, token_message


@pytest.mark.parametrize("authorization_id", ["", "alice"])
async def test_a_valid_token_is_accepted_and_says_when_it_expires(authorization_id: str) -> None:
    exchange = OauthBearerExchange(OneToken())
    assert await exchange.step(token_message("right", authorization_id)) == b""
    assert exchange.principal == Principal("User", "alice")
    assert exchange.expires_at_ms == 123_456
    with pytest.raises(AuthenticationFailed):
        await exchange.step(token_message("right"))


async def test_an_invalid_token_is_answered_with_json_and_fails_on_the_next_message() -> None:
    exchange = OauthBearerExchange(OneToken())
    assert await exchange.step(token_message("wrong")) == b'{"status":"invalid_token"}'
    assert exchange.principal is None
    failed = await failure(exchange, ACKNOWLEDGEMENT)
    assert failed.message == '{"status":"invalid_token"}'
    assert failed.reason == "not the one token"


async def test_the_user_of_a_token_is_named_whether_it_is_valid_or_not() -> None:
    exchange = OauthBearerExchange(OneToken())
    assert exchange.user == ""
    await failure(exchange, token_message("wrong"), ACKNOWLEDGEMENT)
    assert exchange.user == "claimed by wrong"
    exchange = OauthBearerExchange(OneToken())
    await failure(exchange, token_message("right", "bob"))
    assert exchange.user == "alice"


async def test_a_missing_scope_is_named() -> None:
    exchange = OauthBearerExchange(OneToken())
    assert await exchange.step(token_message("scopeless")) == b'{"status":"insufficient_scope","scope":"[kafka]"}'


async def test_a_right_token_after_a_wrong_one_fails() -> None:
    exchange = OauthBearerExchange(OneToken())
    await exchange.step(token_message("wrong"))
    await failure(exchange, token_message("right"))


async def test_nobody_acts_for_another_user() -> None:
    failed = await failure(OauthBearerExchange(OneToken()), token_message("right", "bob"))
    assert failed.message == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's principal"
        " name (alice)"
    )


async def test_an_acknowledgement_without_a_refusal_fails() -> None:
    await failure(OauthBearerExchange(OneToken()), ACKNOWLEDGEMENT)


async def test_every_prefix_fails_without_a_word_of_the_token() -> None:
    whole = token_message("right")
    for end in range(len(whole)):
        failed = await failure(OauthBearerExchange(OneToken()), whole[:end])
        assert "right" not in failed.message + failed.reason


@pytest.mark.parametrize("size", [65 * 1024, 8 * 1024 * 1024])
async def test_a_large_message_fails(size: int) -> None:
    await failure(OauthBearerExchange(OneToken()), b"n,,\x01auth=Bearer right".ljust(size, b"t") + b"\x01\x01")
