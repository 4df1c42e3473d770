from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.security.authentication.tokens.unsecured_tokens import UnsecuredSettings, UnsecuredTokens
from odradek.broker.security.authentication.tokens.validator import INSUFFICIENT_SCOPE, InvalidToken, ValidToken
from odradek.broker.testing.clock import ManualClock
from tests.security.authentication.tokens.issuer import NOW, NOW_MS, claims, part, token, unsecured_token


def validator(**options: str) -> UnsecuredTokens:
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return UnsecuredTokens(UnsecuredSettings.from_options({"username": "x", **named}), ManualClock(NOW_MS))


async def refusal(text: str, of: UnsecuredTokens | None = None) -> InvalidToken:
    with pytest.raises(InvalidToken) as raised:
        await (of or validator()).validate(text)
    return raised.value


async def test_a_token_that_nobody_signed_is_accepted() -> None:
    assert await validator().validate(unsecured_token()) == ValidToken(
        "alice", (NOW + 600) * 1000, frozenset({"kafka"})
    )


def test_the_name_that_a_token_claims_needs_no_valid_token() -> None:
    assert validator().claimed_name(unsecured_token(exp=NOW - 1000)) == "alice"
    assert validator(PrincipalClaimName="scope").claimed_name(unsecured_token()) == "kafka"
    assert validator().claimed_name("") == ""


async def test_scopes_are_trimmed_as_by_java_but_not_the_name() -> None:
    text = unsecured_token(sub=" alice ", scope=[" kafka\t", "\xa0kafka", " "])
    valid = await validator().validate(text)
    assert valid == ValidToken(" alice ", (NOW + 600) * 1000, frozenset({"kafka", "\xa0kafka"}))


async def test_a_fraction_of_a_second_counts() -> None:
    assert (await validator().validate(unsecured_token(exp=NOW + 0.25))).expires_at_ms == NOW_MS + 250


@pytest.mark.parametrize(
    "text",
    [
        token(),
        unsecured_token() + "AAAA",
        unsecured_token({"alg": "HS256"}),
        unsecured_token({"alg": "None"}),
        unsecured_token({"typ": "JWT"}),
        f"{part({'alg': 'none'})}.{part(claims())}",
        f"{part({'alg': 'none'})}..",
        f"{part({'alg': 'none'})}.{part([])}.",
        f"{part({'alg': 'none'})}.{part(b'{')}.",
        "",
    ],
    ids=range(10),
)
async def test_another_form_is_refused(text: str) -> None:
    assert (await refusal(text)).status == "invalid_token"


@pytest.mark.parametrize(
    "changes",
    [
        {"sub": None},
        {"sub": " "},
        {"sub": 7},
        {"exp": None},
        {"exp": NOW},
        {"exp": "x"},
        {"iat": NOW + 1},
        {"iat": "x"},
        {"iat": NOW - 10, "exp": NOW - 10},
        {"scope": 7},
    ],
    ids=str,
)
async def test_claims_are_refused(changes: dict[str, Any]) -> None:
    assert (await refusal(unsecured_token(**changes))).status == "invalid_token"


async def test_a_required_scope_is_named_in_the_refusal() -> None:
    strict = validator(RequiredScope=" kafka  login ")
    assert (await strict.validate(unsecured_token(scope=["login", "kafka", "x"]))).principal_name == "alice"
    refused = await refusal(unsecured_token(), strict)
    assert (refused.status, refused.scope) == (INSUFFICIENT_SCOPE, "[kafka, login]")


async def test_the_options_are_those_of_kafkas_handler() -> None:
    other = validator(PrincipalClaimName="name", ScopeClaimName="scp", AllowableClockSkewMs="3000")
    valid = await other.validate(unsecured_token(name="bob", scp="a", exp=NOW - 2, iat=NOW - 5))
    assert valid == ValidToken("bob", (NOW - 2) * 1000, frozenset({"a"}))
    await refusal(unsecured_token(name="bob", exp=NOW - 3, iat=NOW - 5), other)


@pytest.mark.parametrize("skew", ["-1", "1.5", "x", "٣", "99999999999"])
def test_a_clock_skew_that_is_no_number_is_refused(skew: str) -> None:
    with pytest.raises(ValueError, match="AllowableClockSkewMs"):
        validator(AllowableClockSkewMs=skew)
