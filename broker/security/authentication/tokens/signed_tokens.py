"""Tokens with a signature of an issuer: what Kafka's `BrokerJwtValidator` accepts, and jose4j below it.

A token is accepted if its algorithm is one of `ALGORITHMS`, a key of the issuer verifies it, it is current (`exp` and
`iat` are required, `nbf` is not; all with `clock_skew_seconds`), and issuer and audience are those that are expected. A
token with an audience is refused if none is expected (RFC 7519, 4.1.3). Headers that a receiver must understand
(`crit`) are refused. Those that bring keys (`jwk`, `jku`, `x5c`, `x5u`) are ignored: keys come from the issuer's set.
The principal's name and the scopes are trimmed, as by Kafka's `ClaimValidationUtils`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry, deserialize_compact

from odradek.broker.clock import Clock
from odradek.broker.security.authentication.exchange import quoted
from odradek.broker.security.authentication.tokens.key_set import ALGORITHMS, Key
from odradek.broker.security.authentication.tokens.token_parts import (
    MAXIMUM_HEADER_BYTES,
    MAXIMUM_TOKEN_BYTES,
    claimed_text,
    json_object,
    required_time_claim,
    split,
    text_claim,
    text_claims,
    time_claim,
    trimmed,
)
from odradek.broker.security.authentication.tokens.validator import InvalidToken, ValidToken

FindKey = Callable[[str | None, str], Awaitable[Key | None]]
"""Returns the issuer's key for a `kid` (None: the token has none) and an algorithm."""


class SignedTokenSettings(msgspec.Struct, frozen=True):
    """What a token must say.

    `expected_audience`: `sasl.oauthbearer.expected.audience`, of which a token must name one; `expected_issuer`:
    `sasl.oauthbearer.expected.issuer`; `clock_skew_seconds`: `sasl.oauthbearer.clock.skew.seconds`;
    `scope_claim_name`: `sasl.oauthbearer.scope.claim.name`; `sub_claim_name`: `sasl.oauthbearer.sub.claim.name`, the
    claim that is the principal's name.
    """

    expected_audience: tuple[str, ...] = ()
    expected_issuer: str | None = None
    clock_skew_seconds: int = 30
    scope_claim_name: str = "scope"
    sub_claim_name: str = "sub"


class _Registry(JWSRegistry):
    """The algorithms of `ALGORITHMS`, without the warning that EdDSA has a second name since RFC 9864."""

    max_header_length = MAXIMUM_HEADER_BYTES
    max_payload_length = MAXIMUM_TOKEN_BYTES
    max_signature_length = 2048  # of an RSA key of 8,192 bits: 1,366

    def get_alg(self, name: str) -> Any:
        if name not in ALGORITHMS:
            raise JoseError("the algorithm is not allowed")
        return self.algorithms[name]


_REGISTRY = _Registry(strict_check_header=False)


class SignedTokens:
    """Accepts tokens that an issuer signed for this broker."""

    def __init__(self, settings: SignedTokenSettings, find_key: FindKey, clock: Clock) -> None:
        self._settings = settings
        self._find_key = find_key
        self._clock = clock

    async def validate(self, token: str) -> ValidToken:
        encoded_header, encoded_claims, _ = split(token)
        header = json_object(encoded_header)
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise InvalidToken("the algorithm of a token is not allowed")
        if "crit" in header or "b64" in header:
            raise InvalidToken("a token demands an extension that is not supported")
        if kid is not None and not isinstance(kid, str):
            raise InvalidToken("the key id of a token is no text")
        key = await self._find_key(kid, algorithm)
        if key is None:
            raise InvalidToken(f"there is no key {quoted(kid or '')} for {algorithm}")
        try:
            deserialize_compact(token, key, registry=_REGISTRY)
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise InvalidToken(f"the signature of a token is wrong ({type(error).__name__})") from None
        return self._accepted(json_object(encoded_claims))

    def claimed_name(self, token: str) -> str:
        return trimmed(claimed_text(token, self._settings.sub_claim_name))

    def _accepted(self, claims: dict[str, Any]) -> ValidToken:
        """Check the claims of a token whose signature is right."""
        settings = self._settings
        expires = self._check_times(claims)
        if settings.expected_issuer is not None and claims.get("iss") != settings.expected_issuer:
            raise InvalidToken("the token is not from the expected issuer")
        audience = text_claims(claims, "aud")
        if (audience or settings.expected_audience) and not set(audience).intersection(settings.expected_audience):
            raise InvalidToken("the token is not for the expected audience")
        scopes = [trimmed(scope) for scope in text_claims(claims, settings.scope_claim_name)]
        if not all(scopes) or len(set(scopes)) != len(scopes):
            raise InvalidToken(f"the claim {settings.scope_claim_name} has a scope that is empty, or one twice")
        name = trimmed(text_claim(claims, settings.sub_claim_name))
        return ValidToken(name, int(1000 * expires), frozenset(scopes))

    def _check_times(self, claims: dict[str, Any]) -> float:
        now, skew = self._clock.time_ms() / 1000, self._settings.clock_skew_seconds
        expires, issued = required_time_claim(claims, "exp"), required_time_claim(claims, "iat")
        valid_from = time_claim(claims, "nbf")
        if now - skew >= expires:
            raise InvalidToken("the token has expired")
        if valid_from is not None and now + skew < valid_from:
            raise InvalidToken("the token is not valid yet")
        if expires < max(issued, valid_from or 0):
            raise InvalidToken("the token expires before it was issued, or before it is valid")
        return expires
