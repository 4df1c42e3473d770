"""The client's side of each mechanism: the order of its messages, which `protocol.sasl` encodes.

| mechanism | this client sends | the broker answers |
|---|---|---|
| PLAIN | user and password | nothing |
| SCRAM-SHA-… | first message; final message with its proof | salt and iterations; its own proof, which is verified |
| OAUTHBEARER | a token | nothing, or a JSON object with the reason why not, which has to be acknowledged |
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final, Protocol

from odradek.client.errors import ConfigurationError
from odradek.client.security.credentials import PasswordCredentials
from odradek.protocol.sasl.errors import SaslError
from odradek.protocol.sasl.gs2 import Extensions
from odradek.protocol.sasl.oauthbearer import ACKNOWLEDGEMENT, ClientInitialResponse, TokenRefusal
from odradek.protocol.sasl.plain import PlainMessage
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS
from odradek.protocol.sasl.scram_client import ScramClient

CHECK_USER: Final = "Check user and password, and that the broker has this user for this mechanism"
_CHECK_TOKEN: Final = "Check the token's issuer, audience, scope and expiry, and what the broker expects"  # noqa: S105
_NONCE_BYTES: Final = 24


class Exchange(Protocol):
    """One authentication."""

    cure_of_refusal: str

    @property
    def detail(self) -> str:
        """The reason that the broker sent besides its error message; empty without one."""
        ...

    def first(self) -> bytes:
        """The first message. Raises ConfigurationError if the credentials cannot be sent."""
        ...

    async def next(self, challenge: bytes) -> bytes | None:
        """The answer to the broker's message; None at the end. Raises SaslError."""
        ...


def exchange_of(mechanism: str, credentials: PasswordCredentials) -> Exchange:
    """A new exchange of PLAIN or SCRAM."""
    return PlainExchange(credentials) if mechanism == "PLAIN" else ScramExchange(mechanism, credentials)


class PlainExchange:
    """PLAIN."""

    cure_of_refusal = CHECK_USER
    detail = ""

    def __init__(self, credentials: PasswordCredentials) -> None:
        self._credentials = credentials

    def first(self) -> bytes:
        try:
            return PlainMessage(*self._credentials).encode()
        except ValueError as error:
            raise _cannot_be_sent(error) from None

    async def next(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - empty
        return None


class ScramExchange:
    """SCRAM, in which the broker proves that it has the user's credential, too."""

    cure_of_refusal = CHECK_USER
    detail = ""

    def __init__(self, mechanism: str, credentials: PasswordCredentials) -> None:
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        try:
            self._client = ScramClient(SCRAM_MECHANISMS[mechanism], *credentials, nonce)
        except ValueError as error:
            raise _cannot_be_sent(error) from None
        self._is_final = False

    def first(self) -> bytes:
        return self._client.first()

    async def next(self, challenge: bytes) -> bytes | None:
        if self._is_final:
            self._client.verify(challenge)
            return None
        self._is_final = True
        # On a thread: the broker chooses how often the password is hashed, up to a second's worth.
        return await asyncio.to_thread(self._client.final, challenge)


class BearerExchange:
    """OAUTHBEARER."""

    cure_of_refusal = _CHECK_TOKEN

    def __init__(self, token: str, extensions: Extensions) -> None:
        self._message = ClientInitialResponse(token, extensions=extensions)
        self.detail = ""

    def first(self) -> bytes:
        try:
            return self._message.encode()
        except ValueError as error:
            raise _cannot_be_sent(error) from None

    async def next(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self.detail:
            raise SaslError("the broker refused the token, and goes on")
        refusal = TokenRefusal.decode(challenge)
        scope = f", it wants the scope {refusal.scope}" if refusal.scope else ""
        self.detail = f"{refusal.status}{scope}"
        return ACKNOWLEDGEMENT  # which the broker answers with its error


def _cannot_be_sent(error: ValueError) -> ConfigurationError:
    return ConfigurationError("authenticate", str(error), "Change the user, the password or the token")
