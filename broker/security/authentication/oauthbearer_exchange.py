"""The server's side of OAUTHBEARER (RFC 7628; Kafka's `OAuthBearerSaslServer`).

| state | message of the client | answer | next state |
|---|---|---|---|
| FIRST | a token that is valid | empty | DONE |
| FIRST | a token that is not | a JSON object with the reason, as `{"status":"invalid_token"}` | REFUSED |
| any | anything else | `AuthenticationFailed`; in REFUSED with the JSON object as its message, as in Kafka | DONE |

Extensions are accepted and ignored, as by Kafka's validators. Differs from Kafka: a token after a refused one fails,
where Kafka gives it a try on the same connection.
"""

from __future__ import annotations

import hmac

from odradek.broker.security.authentication.exchange import AuthenticationFailed, invalid_credentials, quoted
from odradek.broker.security.authentication.tokens.validator import InvalidToken, TokenValidator
from odradek.broker.security.principal import USER, Principal
from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.oauthbearer import OAUTHBEARER, ClientInitialResponse, TokenRefusal


class OauthBearerExchange:
    """One exchange of OAUTHBEARER."""

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._is_started = False
        self._refusal: AuthenticationFailed | None = None
        self.user = ""
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    async def step(self, token: bytes) -> bytes:
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            raise refusal
        if self._is_started:
            raise self._failure("a message after the last one")
        self._is_started = True
        try:
            message = ClientInitialResponse.decode(token)
        except SaslMessageError as error:
            raise self._failure(str(error)) from None
        try:
            valid = await self._validator.validate(message.token)
        except InvalidToken as error:
            self.user = self._validator.claimed_name(message.token)
            answer = TokenRefusal(error.status, error.scope).encode()
            self._refusal = AuthenticationFailed(answer.decode(), error.reason)
            return answer
        self.user = valid.principal_name
        if message.authorization_id and not hmac.compare_digest(
            message.authorization_id.encode(), valid.principal_name.encode()
        ):
            wanted, name = message.authorization_id, valid.principal_name
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({wanted}) that is different from the"
                f" token's principal name ({name})",
                f"the token of {quoted(name)} is to act for {quoted(wanted)}",
            )
        self.expires_at_ms = valid.expires_at_ms
        self.principal = Principal(USER, valid.principal_name)
        return b""

    def _failure(self, reason: str) -> AuthenticationFailed:
        return AuthenticationFailed(invalid_credentials(OAUTHBEARER), reason)
