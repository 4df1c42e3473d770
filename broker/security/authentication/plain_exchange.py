"""The server's side of PLAIN (Kafka's `PlainSaslServer` and `PlainServerCallbackHandler`): one message, no answer."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from odradek.broker.security.authentication.exchange import (
    INVALID_CREDENTIALS,
    OTHER_AUTHORIZATION_ID,
    AuthenticationFailed,
    invalid_credentials,
    quoted,
)
from odradek.broker.security.principal import USER, Principal
from odradek.protocol.sasl.errors import MissingPasswordError, SaslMessageError
from odradek.protocol.sasl.plain import PLAIN, PlainMessage


class PlainExchange:
    """One exchange of PLAIN against a table of users and passwords."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._used = False
        self.user = ""
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def step(self, token: bytes) -> bytes:
        if self._used:
            raise AuthenticationFailed(invalid_credentials(PLAIN), "a second message of PLAIN")
        self._used = True
        try:
            message = PlainMessage.decode(token)
        except MissingPasswordError as error:
            self.user = error.username
            raise AuthenticationFailed(str(error), f"no password of user {quoted(error.username)}") from None
        except SaslMessageError as error:
            raise AuthenticationFailed(str(error), str(error)) from None
        name = self.user = message.username
        expected = self._passwords.get(name)
        # An unknown user costs the same comparison as a known one.
        is_right = hmac.compare_digest(message.password.encode(), ("" if expected is None else expected).encode())
        if expected is None or not is_right:
            what = "unknown user" if expected is None else "wrong password of user"
            raise AuthenticationFailed(INVALID_CREDENTIALS, f"{what} {quoted(name)}")
        if message.authorization_id not in ("", name):
            raise AuthenticationFailed(
                OTHER_AUTHORIZATION_ID,
                f"user {quoted(name)} wants to act for {quoted(message.authorization_id)}",
            )
        self.principal = Principal(USER, name)
        return b""
