"""The three parts of a token in JWS compact form (RFC 7515, 7.1), and the types of its claims (RFC 7519).

`base64url(header) "." base64url(claims) "." base64url(signature)`; header and claims are JSON objects. All of it is the
client's: sizes are bounded, and whatever is wrong raises `InvalidToken`, whose reason does not quote the token.
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from typing import Any, Final

import msgspec

from odradek.broker.security.authentication.tokens.validator import InvalidToken

MAXIMUM_TOKEN_BYTES: Final = 32 * 1024
"""Inclusive. Tokens of large companies have 10 KiB; http servers accept 8 to 16 KiB."""
MAXIMUM_HEADER_BYTES: Final = 4 * 1024
"""Inclusive, in base64."""
_LATEST_SECONDS = 253_402_300_800  # the year 10000: later numbers are milliseconds by mistake, or an attack

_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def split(token: str) -> tuple[str, str, str]:
    """Return the encoded header, claims and signature. Raises `InvalidToken`."""
    if len(token) > MAXIMUM_TOKEN_BYTES:
        raise InvalidToken(f"a token of {len(token)} bytes is longer than {MAXIMUM_TOKEN_BYTES} bytes")
    parts = token.split(".", 3)
    if len(parts) != 3:
        raise InvalidToken("a token does not have three parts")
    header, claims, signature = parts
    if len(header) > MAXIMUM_HEADER_BYTES:
        raise InvalidToken(f"a header of {len(header)} bytes is longer than {MAXIMUM_HEADER_BYTES} bytes")
    return header, claims, signature


def json_object(part: str) -> dict[str, Any]:
    """Decode a header or claims. Raises `InvalidToken`."""
    try:
        return _decode_object(b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, ValueError, RecursionError):
        # Without its cause, which may quote the token.
        raise InvalidToken("a part of a token is not a JSON object in base64") from None


def claimed_text(token: str, name: str) -> str:
    """Return a claim of a token that nothing has checked; empty if there is no such text."""
    try:
        return text_claim(json_object(split(token)[1]), name)
    except InvalidToken:
        return ""


def trimmed(text: str) -> str:
    """Return `text` without what Java's `String.trim` removes: characters up to the space, and no other white space."""
    return text.strip(_TRIMMED)


def text_claim(claims: dict[str, Any], name: str) -> str:
    """Return a claim that must be a text that is not blank, as it is. Raises `InvalidToken`."""
    value = claims.get(name)
    if not isinstance(value, str) or not trimmed(value):
        raise InvalidToken(f"the claim {name} is missing or no text")
    return value


def time_claim(claims: dict[str, Any], name: str) -> float | None:
    """Return a claim in seconds since the epoch, None if it is missing. Raises `InvalidToken`."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidToken(f"the claim {name} is no number")
    if not 0 <= value <= _LATEST_SECONDS:
        raise InvalidToken(f"the claim {name} is no time in seconds")
    return value


def required_time_claim(claims: dict[str, Any], name: str) -> float:
    """Return a claim in seconds since the epoch. Raises `InvalidToken`."""
    value = time_claim(claims, name)
    if value is None:
        raise InvalidToken(f"the claim {name} is missing")
    return value


def text_claims(claims: dict[str, Any], name: str) -> list[str]:
    """Return a claim that is a text or a list of texts, as a list; empty if it is missing. Raises `InvalidToken`."""
    value = claims.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(each, str) for each in values):
        raise InvalidToken(f"the claim {name} is neither a text nor a list of texts")
    return values
