"""Tokens without a signature, for tests: everybody can write one.

In Kafka: `OAuthBearerUnsecuredValidatorCallbackHandler`. The header's `alg` is `none` and the signature empty. `exp` is
required; `iat`, if there, is neither in the future nor after `exp`. As in Kafka, `nbf` is ignored, and scopes are
trimmed, but not the principal's name. The caller makes sure that this is used on loopback addresses only.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from odradek.broker.clock import Clock
from odradek.broker.security.authentication.tokens.token_parts import (
    claimed_text,
    json_object,
    required_time_claim,
    split,
    text_claim,
    text_claims,
    time_claim,
    trimmed,
)
from odradek.broker.security.authentication.tokens.validator import INSUFFICIENT_SCOPE, InvalidToken, ValidToken


class UnsecuredSettings(msgspec.Struct, frozen=True):
    """The options of the login module that the validator reads; their names in Kafka begin with `unsecuredValidator`.

    `principal_claim_name`: `unsecuredValidatorPrincipalClaimName`; `scope_claim_name`:
    `unsecuredValidatorScopeClaimName`; `required_scope`: `unsecuredValidatorRequiredScope`, separated by spaces;
    `allowable_clock_skew_ms`: `unsecuredValidatorAllowableClockSkewMs`.
    """

    principal_claim_name: str = "sub"
    scope_claim_name: str = "scope"
    required_scope: tuple[str, ...] = ()
    allowable_clock_skew_ms: int = 0

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> UnsecuredSettings:
        """Read the options of a JAAS entry; other options are ignored. Raises ValueError with a sentence."""

        def option(name: str, default: str) -> str:
            return options.get(f"unsecuredValidator{name}", "").strip() or default

        skew = option("AllowableClockSkewMs", "0")
        if not skew.isascii() or not skew.isdigit() or len(skew) > 10:
            raise ValueError("unsecuredValidatorAllowableClockSkewMs is not a number of milliseconds, such as 30000")
        return cls(
            option("PrincipalClaimName", "sub"),
            option("ScopeClaimName", "scope"),
            tuple(option("RequiredScope", "").split()),
            int(skew),
        )


class UnsecuredTokens:
    """Accepts tokens that are well-formed and current, whoever wrote them."""

    def __init__(self, settings: UnsecuredSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def validate(self, token: str) -> ValidToken:
        settings = self._settings
        encoded_header, encoded_claims, signature = split(token)
        if json_object(encoded_header).get("alg") != "none" or signature:
            raise InvalidToken("an unsecured token has a signature, or another algorithm than none")
        claims = json_object(encoded_claims)
        name = text_claim(claims, settings.principal_claim_name)
        self._check_times(required_time_claim(claims, "exp"), time_claim(claims, "iat"))
        scopes = frozenset(filter(None, map(trimmed, text_claims(claims, settings.scope_claim_name))))
        if not scopes.issuperset(settings.required_scope):
            required = f"[{', '.join(settings.required_scope)}]"
            raise InvalidToken(f"the scope lacks one of {required}", INSUFFICIENT_SCOPE, required)
        return ValidToken(name, round(1000 * required_time_claim(claims, "exp")), scopes)

    def claimed_name(self, token: str) -> str:
        return claimed_text(token, self._settings.principal_claim_name)

    def _check_times(self, expires: float, issued: float | None) -> None:
        now, skew = self._clock.time_ms(), self._settings.allowable_clock_skew_ms
        if issued is not None and 1000 * issued > now + skew:
            raise InvalidToken("the token was issued in the future")
        if now - skew >= 1000 * expires:
            raise InvalidToken("the token has expired")
        if issued is not None and expires <= issued:
            raise InvalidToken("the token expires before it was issued")
