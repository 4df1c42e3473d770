"""The tokens of OAUTHBEARER: requested when a connection needs one, and kept until most of their life is over.

All connections of a client share a `TokenSource`, so that ten connections need one token. A new one is got when four
fifths of the old one's life are over (Kafka's sasl.login.refresh.window.factor); if that fails, the old one is used as
long as it is valid.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.client.errors import AuthenticationFailedError, ClientError
from odradek.client.security.client_credentials import fetch_token
from odradek.client.security.credentials import ClientCredentials, ProvidedTokens, UnsecuredTokens

if TYPE_CHECKING:
    from ssl import SSLContext

_LOG = logging.getLogger(__name__)

_REFRESH_AFTER: Final = 0.8


class Token(NamedTuple):
    """A token, and the time at which it expires, in seconds since the epoch."""

    value: str
    expires_at: float

    def __repr__(self) -> str:
        return f"Token([hidden], expires_at={self.expires_at})"


class TokenSource:
    """The tokens of one client, for one event loop. `context` is the TLS context for the token endpoint."""

    def __init__(
        self, credentials: ProvidedTokens | ClientCredentials | UnsecuredTokens, context: SSLContext | None = None
    ) -> None:
        self._credentials = credentials
        self._context = context
        self._token: Token | None = None
        self._refresh_at = 0.0  # seconds since the epoch
        self._lock = asyncio.Lock()

    @property
    def extensions(self) -> Mapping[str, str]:
        """The extensions to send beside the token (KIP-342)."""
        return self._credentials.extensions

    async def token(self) -> Token:
        """A valid token. Raises AuthenticationFailedError, or another ClientError if its source cannot be reached."""
        async with self._lock:
            now = time.time()
            if self._token is None or now >= self._refresh_at:
                try:
                    self._token = await self._get()
                except ClientError as error:
                    if self._token is None or now >= self._token.expires_at:
                        raise
                    _LOG.warning("%s; the client uses the token before, which expires soon", error)
                    return self._token
                self._refresh_at = now + _REFRESH_AFTER * (self._token.expires_at - now)
            return self._token

    async def _get(self) -> Token:
        credentials = self._credentials
        if isinstance(credentials, UnsecuredTokens):
            return _unsecured(credentials)
        if isinstance(credentials, ClientCredentials):
            return Token(*await asyncio.to_thread(fetch_token, credentials, self._context))
        return await _provided(credentials)


async def _provided(credentials: ProvidedTokens) -> Token:
    provider = credentials.provider
    try:
        if inspect.iscoroutinefunction(provider):
            given: Any = await provider()
        else:
            given = await asyncio.to_thread(provider)
            if inspect.isawaitable(given):  # of a callable object, or a partial of a coroutine function
                given = await given
    except ClientError:
        raise
    except Exception as error:
        # The message of the error may have the token or the secret for it: `__cause__` has it, not this text.
        raise AuthenticationFailedError(
            "get a token", f"sasl_oauth_token_provider raised {type(error).__name__}", "Its cause is attached"
        ) from error
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and _is_number(given[1])):
        raise AuthenticationFailedError(
            "get a token",
            f"sasl_oauth_token_provider returned {type(given).__name__}",
            "Return the token and the time at which it expires, in seconds since the epoch",
        )
    token = Token(given[0], float(given[1]))
    if token.expires_at <= time.time():
        raise AuthenticationFailedError(
            "get a token",
            "the token of sasl_oauth_token_provider has expired",
            "Return a new token, and the time at which it expires in seconds since the epoch",
        )
    return token


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _unsecured(credentials: UnsecuredTokens) -> Token:
    """A JWS without a signature (RFC 7515, alg none), which brokers accept in tests only."""
    now = int(time.time())  # a fraction would be the future for a broker whose clock counts milliseconds
    claims: dict[str, Any] = {"sub": credentials.subject, "iat": now, "exp": now + credentials.seconds}
    if credentials.scope is not None:
        claims["scope"] = credentials.scope
    return Token(f"{_base64({'alg': 'none'})}.{_base64(claims)}.", now + credentials.seconds)


def _base64(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
