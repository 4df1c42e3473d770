from __future__ import annotations

import pytest

from odradek.broker.randomness import SystemRandomness
from odradek.broker.security.authentication.mechanisms import Mechanisms, OauthBearer, Plain, Scram
from odradek.broker.security.authentication.unknown_users import UnknownUsers
from odradek.protocol.sasl.plain import PlainMessage
from odradek.protocol.sasl.scram import SCRAM_SHA_256, SCRAM_SHA_512
from tests.security.authentication.exchanges import OneToken, step, token_message

UNKNOWN = UnknownUsers(bytes(32))
SETTINGS = [
    OauthBearer(OneToken()),
    Scram(SCRAM_SHA_512, lambda name: None, lambda: UNKNOWN, SystemRandomness()),
    Plain({"alice": "secret"}),
]


def test_mechanisms_are_listed_in_the_order_of_their_settings() -> None:
    assert Mechanisms(SETTINGS).names == ["OAUTHBEARER", "SCRAM-SHA-512", "PLAIN"]
    assert "PLAIN" in Mechanisms(SETTINGS)
    assert SCRAM_SHA_256.name not in Mechanisms(SETTINGS)


async def test_each_mechanism_creates_its_own_exchanges() -> None:
    mechanisms = Mechanisms(SETTINGS)
    plain, again = mechanisms.exchange("PLAIN"), mechanisms.exchange("PLAIN")
    await step(plain, PlainMessage("alice", "secret").encode())
    assert str(plain.principal) == "User:alice"
    assert again.principal is None
    bearer = mechanisms.exchange("OAUTHBEARER")
    await step(bearer, token_message("right"))
    assert str(bearer.principal) == "User:alice"
    assert (await step(mechanisms.exchange("SCRAM-SHA-512"), b"n,,n=bob,r=abc")).startswith(b"r=abc")


@pytest.mark.parametrize("name", ["GSSAPI", "plain", "SCRAM-SHA-256", ""])
def test_a_mechanism_that_is_not_enabled_has_no_exchange(name: str) -> None:
    with pytest.raises(KeyError):
        Mechanisms(SETTINGS).exchange(name)
