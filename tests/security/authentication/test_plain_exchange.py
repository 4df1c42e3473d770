from __future__ import annotations

import pytest

from odradek.broker.security.authentication.exchange import INVALID_CREDENTIALS, AuthenticationFailed
from odradek.broker.security.authentication.mechanisms import Plain
from odradek.broker.security.authentication.plain_exchange import PlainExchange
from odradek.broker.security.principal import Principal
from odradek.protocol.sasl.plain import PlainMessage
from tests.security.authentication.exchanges import failure

USERS = {"alice": "alice-secret", "bob": "bob-secret", "löwe": "grüße"}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("with_authorization_id", [False, True])
def test_a_user_with_its_password_is_accepted(user: str, with_authorization_id: bool) -> None:
    exchange = PlainExchange(USERS)
    message = PlainMessage(user, USERS[user], user if with_authorization_id else "")
    assert exchange.step(message.encode()) == b""
    assert exchange.principal == Principal("User", user)
    assert exchange.expires_at_ms is None


async def test_an_unknown_user_and_a_wrong_password_fail_alike() -> None:
    unknown = await failure(PlainExchange(USERS), PlainMessage("carol", "alice-secret").encode())
    wrong = await failure(PlainExchange(USERS), PlainMessage("alice", "bob-secret").encode())
    assert unknown.message == wrong.message == str(wrong) == INVALID_CREDENTIALS
    assert (unknown.reason, wrong.reason) == ("unknown user 'carol'", "wrong password of user 'alice'")


async def test_an_unknown_user_has_no_password() -> None:
    assert (await failure(PlainExchange({}), b"\0carol\0\0")).message.startswith("Invalid SASL/PLAIN response")
    assert (await failure(PlainExchange({}), b"\0carol\0")).message == "Authentication failed: password not specified"


async def test_the_user_that_failed_is_named() -> None:
    for message in (b"\0carol\0x", b"\0carol\0"):
        exchange = PlainExchange(USERS)
        assert "user 'carol'" in (await failure(exchange, message)).reason
        assert exchange.user == "carol"


@pytest.mark.parametrize("message", [b"", b"carol", b"carol\0hunter2", b"carol\0hunter2\0", b"\0\0hunter2"])
async def test_a_password_in_another_place_is_not_taken_for_a_user(message: bytes) -> None:
    exchange = PlainExchange(USERS)
    assert "hunter2" not in (await failure(exchange, message)).reason
    assert exchange.user == ""


async def test_nobody_acts_for_another_user() -> None:  # CVE-2017-12610
    failed = await failure(PlainExchange(USERS), PlainMessage("alice", "alice-secret", "bob").encode())
    assert (
        failed.message == "Authentication failed: Client requested an authorization id that is different from username"
    )


def test_an_exchange_has_one_message() -> None:
    exchange = PlainExchange(USERS)
    message = PlainMessage("alice", "alice-secret").encode()
    exchange.step(message)
    with pytest.raises(AuthenticationFailed):
        exchange.step(message)


@pytest.mark.parametrize("size", [17 * 1024, 8 * 1024 * 1024])
async def test_a_large_message_fails(size: int) -> None:
    failed = await failure(PlainExchange(USERS), b"\0alice\0".ljust(size, b"x"))
    assert len(failed.reason) < 200


async def test_every_prefix_fails() -> None:
    message = PlainMessage("alice", "alice-secret").encode()
    for end in range(len(message)):
        failed = await failure(PlainExchange(USERS), message[:end])
        assert "secret" not in failed.message + failed.reason


async def test_a_long_name_is_cut_in_the_log_and_control_characters_are_escaped() -> None:
    failed = await failure(PlainExchange(USERS), PlainMessage("a\nb" * 1000, "x").encode())
    assert len(failed.reason) < 200
    assert "\n" not in failed.reason


def test_the_repr_of_settings_and_exchanges_shows_no_password() -> None:
    settings = Plain(USERS)
    assert "secret" not in repr(settings) + repr(settings.exchange())
