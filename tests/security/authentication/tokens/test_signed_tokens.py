from __future__ import annotations

import hashlib
import hmac
import json
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jws import JWSRegistry, serialize_compact

from odradek.broker.security.authentication.tokens.key_set import ALGORITHMS, Key, parse_key_set
from odradek.broker.security.authentication.tokens.signed_tokens import SignedTokens, SignedTokenSettings
from odradek.broker.security.authentication.tokens.token_parts import MAXIMUM_TOKEN_BYTES
from odradek.broker.security.authentication.tokens.validator import INVALID_TOKEN, InvalidToken, ValidToken
from odradek.broker.testing.clock import ManualClock
from tests.effort import examples
from tests.security.authentication.tokens.issuer import KID_OF, NOW, NOW_MS, claims, key_set, keys, part, token


def validator(keys_text: bytes | None = None, now_ms: int = NOW_MS, **settings: Any) -> SignedTokens:
    parsed = parse_key_set(key_set() if keys_text is None else keys_text)

    async def find(kid: str | None, algorithm: str) -> Key | None:
        return parsed.find(kid, algorithm)

    return SignedTokens(SignedTokenSettings(**settings), find, ManualClock(now_ms))


async def refusal(text: str, of: SignedTokens | None = None) -> str:
    with pytest.raises(InvalidToken) as raised:
        await (of or validator()).validate(text)
    assert raised.value.status == INVALID_TOKEN
    assert raised.value.scope is None
    signature = text.rpartition(".")[2]
    assert len(signature) < 20 or signature not in raised.value.reason
    return raised.value.reason


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_token_of_each_algorithm_is_accepted(algorithm: str) -> None:
    valid = await validator().validate(token(algorithm))
    assert valid == ValidToken("alice", (NOW + 600) * 1000, frozenset({"kafka"}))


def test_the_name_that_a_token_claims_needs_no_valid_token() -> None:
    expired = token(exp=NOW - 1000)
    assert validator().claimed_name(expired) == "alice"
    assert validator().claimed_name(expired[:-4] + "AAAA") == "alice"
    assert validator(sub_claim_name="scope").claimed_name(expired) == "kafka"
    assert validator(sub_claim_name="missing").claimed_name(expired) == ""
    for text in ("", "a.b", f"{part({})}.{part([])}.", f"{part({})}.{part({'sub': 1})}.", "." * MAXIMUM_TOKEN_BYTES):
        assert validator().claimed_name(text) == ""


async def test_a_token_of_ed448_is_accepted() -> None:
    assert (await validator().validate(token("EdDSA", kid="ed448"))).principal_name == "alice"


RFC_7515_A3 = (
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
)
RFC_7515_A3_KEYS = json.dumps(
    {
        "keys": [
            {
                "kty": "EC",
                "crv": "P-256",
                "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
            }
        ]
    }
).encode()


async def test_the_signature_of_rfc_7515_is_right_and_its_claims_are_too_few() -> None:
    examined = validator(RFC_7515_A3_KEYS, now_ms=1_300_000_000_000)
    assert await refusal(RFC_7515_A3, examined) == "the claim iat is missing"
    assert "signature" in await refusal(RFC_7515_A3.replace(".Dt", ".Du"), examined)


async def test_the_signature_of_rfc_8037_is_right_and_it_has_no_claims() -> None:
    text = (
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4"
        "iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    )
    keys_text = (
        b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "a"}]}'
    )
    examined = validator(keys_text)
    assert "JSON object" in await refusal(text, examined)
    assert "signature" in await refusal(text.replace(".hg", ".ig"), examined)


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "HS256", "HS384", "HS512", "ES256K", "RSA1_5", "", 1, None, ["RS256"]]
)
async def test_no_other_algorithm_is_accepted(algorithm: Any) -> None:
    _, _, rest = token("RS256").partition(".")
    assert "algorithm" in await refusal(f"{part({'alg': algorithm, 'kid': 'rsa'})}.{rest}")
    assert "algorithm" in await refusal(f"{part({'alg': algorithm, 'kid': 'rsa'})}.{part(claims())}.")


async def test_a_public_key_is_no_secret_for_hmac() -> None:
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(claims())}"
    for secret in (keys()["rsa"].as_pem(private=False), key_set("rsa"), b""):
        signature = hmac.digest(secret, signed.encode(), hashlib.sha256)
        assert "algorithm" in await refusal(f"{signed}.{part(signature)}")


async def test_a_symmetric_key_in_the_set_verifies_nothing() -> None:
    secret = b'{"keys": [{"kty": "oct", "kid": "rsa", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]}'
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(claims())}"
    signature = hmac.digest(b"secretsecretsecretsecretsecret", signed.encode(), hashlib.sha256)
    assert "algorithm" in await refusal(f"{signed}.{part(signature)}", validator(secret))
    assert "no key" in await refusal(token("RS256"), validator(secret))


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
async def test_a_token_signed_by_one_key_is_not_that_of_another(algorithm: str) -> None:
    for kid in keys():
        if kid == KID_OF[algorithm] or (algorithm, kid) == ("EdDSA", "ed448"):
            continue
        header = part({"alg": algorithm, "kid": kid})
        rest = token(algorithm).partition(".")[2]
        assert "no key" in await refusal(f"{header}.{rest}")


@pytest.mark.parametrize(
    "header",
    [{"crit": ["exp"]}, {"crit": []}, {"crit": ["b64"], "b64": True}],
    ids=["known", "empty", "b64"],
)
async def test_a_demanded_extension_is_refused(header: dict[str, Any]) -> None:
    text = token(kid="p256")
    _, payload, _ = text.split(".")
    signed_header = {"alg": "ES256", "kid": "p256", **header}
    assert "extension" in await refusal(f"{part(signed_header)}.{payload}.AAAA")


async def test_keys_in_the_header_are_ignored() -> None:
    attacker = type(keys()["p256"]).generate_key("P-256")
    public = attacker.as_dict(private=False)
    header = {"alg": "ES256", "kid": "p256", "jwk": public, "jku": "https://attacker.example", "x5u": "file:/dev/zero"}
    text = serialize_compact({"alg": "ES256"}, json.dumps(claims()), attacker, ["ES256"])
    forged = f"{part(header)}.{text.partition('.')[2]}"
    assert "signature" in await refusal(forged)


async def test_an_unknown_header_is_ignored() -> None:
    header = {"alg": "ES256", "kid": "p256", "x": "y"}
    registry = JWSRegistry(algorithms=["ES256"], strict_check_header=False)
    text = serialize_compact(header, json.dumps(claims()), keys()["p256"], registry=registry)
    assert (await validator().validate(text)).principal_name == "alice"


async def test_a_token_without_a_key_id_is_accepted_if_one_key_suits() -> None:
    assert (await validator().validate(token(without_kid=True))).principal_name == "alice"
    assert "no key" in await refusal(token("EdDSA", without_kid=True))  # two keys do
    assert "no key" in await refusal(token(without_kid=True), validator(key_set("rsa")))


@pytest.mark.parametrize("kid", ["unknown", "", "p256\n"])
async def test_an_unknown_key_id_is_refused(kid: str) -> None:
    rest = token().partition(".")[2]
    assert "no key" in await refusal(f"{part({'alg': 'ES256', 'kid': kid})}.{rest}")


@pytest.mark.parametrize("kid", [1, ["p256"], {"a": 1}, True])
async def test_a_key_id_that_is_no_text_is_refused(kid: Any) -> None:
    rest = token().partition(".")[2]
    assert "key id" in await refusal(f"{part({'alg': 'ES256', 'kid': kid})}.{rest}")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": NOW - 31}, "expired"),
        ({"exp": NOW - 30}, "expired"),
        ({"exp": None}, "exp is missing"),
        ({"exp": "1800000600"}, "exp is no number"),
        ({"exp": True}, "exp is no number"),
        ({"exp": 1e300}, "no time in seconds"),
        ({"exp": NOW_MS}, "no time in seconds"),
        ({"exp": -1}, "no time in seconds"),
        ({"iat": None}, "iat is missing"),
        ({"iat": NOW + 601}, "before it was issued"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"sub": None}, "sub is missing"),
        ({"sub": ""}, "sub is missing"),
        ({"sub": " "}, "sub is missing"),
        ({"sub": 7}, "sub is missing"),
        ({"scope": ["a", "a"]}, "scope that is empty, or one twice"),
        ({"scope": ["a", " "]}, "scope that is empty, or one twice"),
        ({"scope": 7}, "scope is neither"),
        ({"aud": "other"}, "audience"),  # none is expected: RFC 7519, 4.1.3
    ],
)
async def test_claims_are_refused(changes: dict[str, Any], reason: str) -> None:
    assert reason in await refusal(token(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 29, "iat": NOW - 60},
        {"nbf": NOW + 29},
        {"iat": NOW + 5},
        {"scope": None},
        {"exp": NOW + 0.5},
        {"aud": []},
    ],
    ids=str,
)
async def test_claims_are_accepted(changes: dict[str, Any]) -> None:
    assert (await validator().validate(token(**changes))).principal_name == "alice"


async def test_the_expected_issuer_and_audience_decide() -> None:
    strict = validator(expected_issuer="https://issuer.example", expected_audience=("kafka", "broker"))
    for audience in ("kafka", ["x", "broker"]):
        assert (await strict.validate(token(aud=audience))).principal_name == "alice"
    for audience in (None, "x", [], ["Kafka"]):
        assert "audience" in await refusal(token(aud=audience), strict)
    assert "neither" in await refusal(token(aud=7), strict)
    for issuer in (None, "https://other.example", "https://issuer.example/", 7):
        assert "issuer" in await refusal(token(aud="kafka", iss=issuer), strict)


@pytest.mark.parametrize(
    ("claimed", "name"), [(" alice ", "alice"), ("\talice\x00", "alice"), ("\xa0alice", "\xa0alice")]
)
async def test_the_name_and_the_scopes_are_trimmed_as_by_java(claimed: str, name: str) -> None:
    text = token(sub=claimed, scope=[claimed])
    assert await validator().validate(text) == ValidToken(name, (NOW + 600) * 1000, frozenset({name}))
    assert validator().claimed_name(text) == name


async def test_names_of_claims_and_the_clock_skew_are_settings() -> None:
    settings = validator(scope_claim_name="scp", sub_claim_name="azp", clock_skew_seconds=0)
    valid = await settings.validate(token(azp="client-1", scp=["a", "b"]))
    assert valid == ValidToken("client-1", (NOW + 600) * 1000, frozenset({"a", "b"}))
    assert "expired" in await refusal(token(azp="client-1", exp=NOW), settings)
    assert "azp is missing" in await refusal(token(), settings)


async def test_every_prefix_is_refused() -> None:
    text = token()
    for end in range(len(text)):
        await refusal(text[:end])


@given(st.data())
@examples(100)
async def test_a_changed_character_is_refused(data: st.DataObject) -> None:
    text = token("EdDSA")
    at = data.draw(st.integers(0, len(text) - 3))  # the last character's spare bits are not covered
    changed = text[:at] + data.draw(st.sampled_from("AZaz09-_.+/=")) + text[at + 1 :]
    if changed != text:
        await refusal(changed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "a.b.c.d.e",
        f"{part([])}.{part(claims())}.",
        f"{part(b'{' * 3000)}.{part(claims())}.AAAA",
        part(b'{"alg":"ES256","a":' + b"[" * 2900) + f".{part(claims())}.AAAA",
        part({"alg": "ES256", "a": "x" * 4096}) + f".{part(claims())}.AAAA",
        "a" * (MAXIMUM_TOKEN_BYTES + 1),
        "a" * 8 * 1024 * 1024,
    ],
    ids=range(12),
)
async def test_a_malformed_token_is_refused(text: str) -> None:
    await refusal(text)


async def test_claims_that_are_nested_deeply_are_refused_after_the_signature() -> None:
    payload = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    text = serialize_compact({"alg": "ES256", "kid": "p256"}, payload, keys()["p256"], ["ES256"])
    # Python 3.13 decodes them: its limit is higher.
    assert ("JSON object" if sys.version_info < (3, 13) else "the claim exp is missing") in await refusal(text)


async def test_a_system_clock_is_not_read() -> None:
    """The seam decides what time it is: tokens of this test are from the year 2027."""
    assert abs(time.time() - NOW) > 3600
    assert "expired" in await refusal(token(), validator(now_ms=NOW_MS + 3_600_000))
