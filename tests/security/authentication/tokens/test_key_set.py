from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from joserfc.jwk import OKPKey

from odradek.broker.security.authentication.tokens.key_set import (
    ALGORITHMS,
    MAXIMUM_BYTES,
    MAXIMUM_KEYS,
    KeySetError,
    parse_key_set,
)
from tests.security.authentication.tokens.issuer import KID_OF, key_set, keys


def test_every_algorithm_finds_its_key() -> None:
    parsed = parse_key_set(key_set())
    assert len(parsed) == len(keys())
    for algorithm in ALGORITHMS:
        found = parsed.find(KID_OF[algorithm], algorithm)
        assert found is not None
        assert not found.is_private


def test_a_key_for_one_algorithm_serves_no_other() -> None:
    parsed = parse_key_set(key_set("rsa", alg="PS256", use="sig"))
    assert parsed.find("rsa", "PS256") is not None
    assert parsed.find("rsa", "RS256") is None


def test_private_members_are_not_kept() -> None:
    text = json.dumps({"keys": [{**keys()["p256"].as_dict(private=True), "kid": "p256"}]}).encode()
    found = parse_key_set(text).find("p256", "ES256")
    assert found is not None
    assert not found.is_private


def modulus(bits: int) -> str:
    number = generate_private_key(65537, bits).public_key().public_numbers().n
    return urlsafe_b64encode(number.to_bytes(bits // 8, "big")).decode().rstrip("=")


@pytest.mark.parametrize(
    "members",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"alg": "RSA-OAEP"},
        {"alg": "HS256"},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "PQ"},
        {"kty": 7},
        {"n": None},
        {"n": "AAAA"},
        {"n": "ä"},
        {"n": "A" * 2000},
        {"kid": 7},
        {"e": ""},
    ],
    ids=str,
)
def test_a_key_that_cannot_verify_tokens_is_skipped(members: dict[str, Any]) -> None:
    first = json.loads(key_set("rsa", **members))["keys"]
    second = json.loads(key_set("p256"))["keys"]
    parsed = parse_key_set(json.dumps({"keys": first + second}).encode())
    assert len(parsed) == 1
    assert parsed.find("p256", "ES256") is not None


def test_a_short_rsa_key_is_skipped() -> None:
    assert len(parse_key_set(key_set("rsa", n=modulus(1024)))) == 0


def test_a_key_for_key_agreement_verifies_nothing() -> None:
    text = json.dumps({"keys": [{**OKPKey.generate_key("X25519").as_dict(private=False), "kid": "x"}]}).encode()
    assert parse_key_set(text).find("x", "EdDSA") is None


def test_a_key_is_bound_to_its_curve() -> None:
    parsed = parse_key_set(key_set("p384"))
    assert parsed.find("p384", "ES384") is not None
    assert parsed.find("p384", "ES256") is None
    assert parsed.find("p384", "RS256") is None


def test_a_point_that_is_not_on_its_curve_is_skipped() -> None:
    assert len(parse_key_set(key_set("p256", x="A" * 43))) == 0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": [}',
        b'{"keys": ' + b"[" * 100_000,
        b"\xff",
        json.dumps({"keys": [{}] * (MAXIMUM_KEYS + 1)}).encode(),
        b'{"keys": []}' + b" " * MAXIMUM_BYTES,
    ],
    ids=range(10),
)
def test_a_text_that_is_no_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(KeySetError):
        parse_key_set(text)


def test_the_set_of_kafkas_own_documentation_may_be_empty() -> None:
    assert len(parse_key_set(b'{"keys": []}')) == 0
