"""A key set (JWKS, RFC 7517): its text, and the keys of it that may verify tokens.

Of each key only its public members are read. Keys are skipped that are symmetric (a client could sign with a public key
that is taken for a secret), for encryption, of an unknown kind, RSA below 2,048 or above 8,192 bits, or malformed: a
set may have keys for others.
"""

from __future__ import annotations

from typing import Final

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64decode

from odradek.protocol.plural import pluralize

MAXIMUM_BYTES: Final = 256 * 1024
"""Inclusive; the largest public sets have about 20 KiB."""
MAXIMUM_KEYS: Final = 256
"""Inclusive."""
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512"),
    *("PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
    "EdDSA",
)
"""The algorithms that are accepted: only signatures, never HMAC and never none."""
_RSA_BITS = (2048, 8192)
_PUBLIC_MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}

Key = RSAKey | ECKey | OKPKey


class KeySetError(Exception):
    """The text is no key set, or too large; the message is a sentence for the log."""


class _Jwk(msgspec.Struct):
    kty: str
    kid: str | None = None
    use: str | None = None
    key_ops: list[str] | None = None
    alg: str | None = None
    n: str | None = None
    e: str | None = None
    crv: str | None = None
    x: str | None = None
    y: str | None = None


class _Document(msgspec.Struct):
    keys: list[msgspec.Raw]


class VerificationKey(msgspec.Struct, frozen=True):
    """A public key of the set. `algorithm`: the only one that it is for, or None."""

    kid: str | None
    algorithm: str | None
    key: Key

    def suits(self, algorithm: str) -> bool:
        """Return whether the key is of the kind, and on the curve, that `algorithm` needs."""
        if self.algorithm not in (None, algorithm):
            return False
        try:
            JWSRegistry.algorithms[algorithm].check_key(self.key)
        except JoseError:
            return False
        # Keys for key agreement are of the same kind as those for EdDSA.
        return not isinstance(self.key, OKPKey) or self.key["crv"] in ("Ed25519", "Ed448")


class KeySet:
    """The keys of one version of the set."""

    def __init__(self, keys: tuple[VerificationKey, ...] = ()) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, kid: str | None, algorithm: str) -> Key | None:
        """Return the key for a token. One without `kid` gets the only key that suits, if there is one."""
        found = [each.key for each in self._keys if (kid is None or each.kid == kid) and each.suits(algorithm)]
        return found[0] if len(found) == 1 or (found and kid is not None) else None


def parse_key_set(text: bytes) -> KeySet:
    """Parse a key set; without a usable key it is empty. Raises `KeySetError`."""
    if len(text) > MAXIMUM_BYTES:
        raise KeySetError(f"the key set has more than {MAXIMUM_BYTES} bytes")
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise KeySetError("the text is no key set: a JSON object with a list of keys") from None
    if len(document.keys) > MAXIMUM_KEYS:
        raise KeySetError(f"the key set has {pluralize(len(document.keys), 'key')}, more than {MAXIMUM_KEYS}")
    parsed = [_parse_key(raw) for raw in document.keys]
    return KeySet(tuple([key for key in parsed if key is not None]))


def _parse_key(raw: msgspec.Raw) -> VerificationKey | None:
    """Return the key, None if it cannot verify tokens."""
    try:
        jwk = msgspec.json.decode(raw, type=_Jwk)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    is_for_others = jwk.use not in (None, "sig") or (jwk.key_ops is not None and "verify" not in jwk.key_ops)
    if jwk.kty not in _PUBLIC_MEMBERS or is_for_others or (jwk.alg is not None and jwk.alg not in ALGORITHMS):
        return None
    members = {name: getattr(jwk, name) for name in _PUBLIC_MEMBERS[jwk.kty]}
    if None in members.values() or (jwk.kty == "RSA" and not _has_size(members["n"])):
        return None
    try:
        key = JWKRegistry.import_key({"kty": jwk.kty, **members})
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return None if isinstance(key, OctKey) else VerificationKey(jwk.kid, jwk.alg, key)


def _has_size(modulus: str) -> bool:
    """Return whether an RSA key has an acceptable size, before joserfc warns of it."""
    try:
        bits = int.from_bytes(urlsafe_b64decode(modulus.encode()), "big").bit_length()
    except ValueError:
        return False
    return _RSA_BITS[0] <= bits <= _RSA_BITS[1]
