"""A token issuer for tests: keys of every kind, its key set, and tokens that it signs."""

from __future__ import annotations

import json
import warnings
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import serialize_compact

NOW_MS = 1_800_000_000_000
NOW = NOW_MS // 1000


@cache
def keys() -> dict[str, RSAKey | ECKey | OKPKey]:
    """Return a private key for each kid."""
    return {
        "rsa": RSAKey.generate_key(2048),
        "p256": ECKey.generate_key("P-256"),
        "p384": ECKey.generate_key("P-384"),
        "p521": ECKey.generate_key("P-521"),
        "ed25519": OKPKey.generate_key("Ed25519"),
        "ed448": OKPKey.generate_key("Ed448"),
    }


KID_OF = {
    "RS256": "rsa",
    "RS384": "rsa",
    "RS512": "rsa",
    "PS256": "rsa",
    "PS384": "rsa",
    "PS512": "rsa",
    "ES256": "p256",
    "ES384": "p384",
    "ES512": "p521",
    "EdDSA": "ed25519",
}


def key_set(*kids: str, **members: Any) -> bytes:
    """Return the text of a key set, of all keys or some; `members` are added to each."""
    return json.dumps(
        {
            "keys": [
                {**key.as_dict(private=False), "kid": kid, **members}
                for kid, key in keys().items()
                if kid in (kids or keys())
            ]
        }
    ).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token of alice; None removes one."""
    made = {"sub": "alice", "iss": "https://issuer.example", "iat": NOW - 10, "exp": NOW + 600, "scope": "kafka"}
    return {name: value for name, value in {**made, **changes}.items() if value is not None}


def token(algorithm: str = "ES256", *, kid: str | None = None, without_kid: bool = False, **changes: Any) -> str:
    """Sign a token of `claims(**changes)` with the key `kid`, by default that for the algorithm."""
    kid = kid or KID_OF[algorithm]
    header = {"alg": algorithm} if without_kid else {"alg": algorithm, "kid": kid}
    with warnings.catch_warnings():  # EdDSA has another name since RFC 9864
        warnings.simplefilter("ignore")
        return serialize_compact(header, json.dumps(claims(**changes)), keys()[kid], [algorithm])


def part(value: Any) -> str:
    """Encode a part of a token."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).decode().rstrip("=")


def unsecured_token(header: Any = None, **changes: Any) -> str:
    return f"{part(header or {'alg': 'none'})}.{part(claims(**changes))}."
