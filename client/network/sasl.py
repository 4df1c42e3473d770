"""Authentication of a connection by SASL (KIP-43, KIP-152), before its first other request, and again (KIP-368).

```
client                                              broker
SaslHandshake v1, mechanism  -------------------->
                             <--------------------  or error 33 with the mechanisms that it has enabled
SaslAuthenticate, token      -------------------->
                             <--------------------  a token of its own, or error 58 with a message, and the end
…                                                   until the mechanism is done
```
The last response has the lifetime of the session. After 85 to 95 % of it, as in Kafka's clients, the connection
authenticates again before its next request (`Connection`). The mechanisms' messages are those of `protocol.sasl`.
"""

from __future__ import annotations

from random import uniform
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.errors import AuthenticationFailedError
from odradek.client.network.sasl_exchanges import CHECK_USER, BearerExchange, Exchange, exchange_of
from odradek.client.security.credentials import Credentials, PasswordCredentials, credentials_of
from odradek.client.security.settings import SecuritySettings
from odradek.client.security.tokens import TokenSource
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.sasl.errors import SaslError, SaslRefusedError, UntrustedServerError

if TYPE_CHECKING:
    from ssl import SSLContext

    from odradek.client.network.connection import Connection

_HANDSHAKE_KEY: Final = 17
_SHARE_OF_LIFETIME: Final = (0.85, 0.95)


class _User(NamedTuple):
    """The user and the mechanism in errors."""

    name: str
    mechanism: str

    @property
    def tried(self) -> str:
        return f"authenticate{f' as {self.name}' if self.name else ''} with {self.mechanism}"


class Authenticator:
    """Authenticates the connections of one client, for one event loop. The settings have SASL."""

    def __init__(self, settings: SecuritySettings) -> None:
        assert settings.sasl_mechanism is not None, "checked with the settings"
        self._mechanism = settings.sasl_mechanism
        self._credentials: Credentials = credentials_of(settings)
        self._settings = settings
        self._tokens: TokenSource | None = None
        name = self._credentials.username if isinstance(self._credentials, PasswordCredentials) else ""
        self._user = _User(name, self._mechanism)

    async def authenticate(self, connection: Connection, seconds: float) -> float | None:
        """Authenticate, with so many seconds for each response. Returns in how many seconds to do it again, or None.

        Raises AuthenticationFailedError, which names the side that refused, and TransportError.
        """
        await self._handshake(connection, seconds)
        exchange = await self._exchange()
        token: bytes | None = exchange.first()
        lifetime_ms = 0
        while token is not None:
            response = await connection.send(SaslAuthenticateRequest(token), SaslAuthenticateResponse, timeout=seconds)
            if response.error_code:
                raise self._refused(response, exchange)
            lifetime_ms = response.session_lifetime_ms
            try:
                token = await exchange.next(bytes(response.auth_bytes))
            except SaslError as error:
                raise self._not_trusted(error) from None
        return lifetime_ms / 1000 * uniform(*_SHARE_OF_LIFETIME) if lifetime_ms > 0 else None

    async def _handshake(self, connection: Connection, seconds: float) -> None:
        version = connection.versions.highest(_HANDSHAKE_KEY, at_least=1)
        response = await connection.send(
            SaslHandshakeRequest(self._mechanism), SaslHandshakeResponse, version=version, timeout=seconds
        )
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(response.mechanisms) or "none"
            raise AuthenticationFailedError(
                self._user.tried,
                f"the broker has not enabled this mechanism; it offers {offered}",
                "Set sasl_mechanism to one that it offers",
            )
        if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise AuthenticationFailedError(
                self._user.tried,
                "the listener does not use SASL",
                f"Set security_protocol to {'SSL' if self._settings.uses_tls else 'PLAINTEXT'}, or use another port",
            )
        if response.error_code:
            raise AuthenticationFailedError(
                self._user.tried, f"the broker answered {ErrorCode.of(response.error_code).name}"
            )

    async def _exchange(self) -> Exchange:
        credentials = self._credentials
        if isinstance(credentials, PasswordCredentials):
            return exchange_of(self._mechanism, credentials)
        if self._tokens is None:
            self._tokens = TokenSource(credentials, self._context_for_tokens())
        token = await self._tokens.token()
        return BearerExchange(token.value, tuple(self._tokens.extensions.items()))

    def _context_for_tokens(self) -> SSLContext | None:
        if self._settings.sasl_oauthbearer_token_endpoint_url is None:
            return None
        from odradek.client.network.tls import context_for_the_web

        return context_for_the_web(self._settings)

    def _refused(self, response: SaslAuthenticateResponse, exchange: Exchange) -> AuthenticationFailedError:
        code = ErrorCode.of(response.error_code)
        said = response.error_message or code.name
        detail = f" ({exchange.detail})" if exchange.detail and exchange.detail not in said else ""
        return AuthenticationFailedError(
            self._user.tried, f"the broker refused: {said}{detail}", exchange.cure_of_refusal
        )

    def _not_trusted(self, error: SaslError) -> AuthenticationFailedError:
        if isinstance(error, SaslRefusedError):
            return AuthenticationFailedError(self._user.tried, f"the broker refused: {error}", CHECK_USER)
        cure = "Is this the right broker?" if isinstance(error, UntrustedServerError) else ""
        return AuthenticationFailedError(self._user.tried, f"this client refused the broker: {error}", cure)
