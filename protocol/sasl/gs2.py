"""What SCRAM and OAUTHBEARER share: the GS2 header, names with their escapes, and extensions (RFC 5801, 5802, 7628).

```
gs2-header = ("n" / "y") "," ["a=" saslname] ","
saslname   = one or more of: any character but NUL, "=", ","   or   "=2C" (a comma)   or   "=3D" (an equals sign)
```

`n`: the client does not support channel binding. `y`: it does, and believes that the server does not, which is true of
Kafka. `p=…` demands channel binding and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from odradek.protocol.sasl.errors import SaslMessageError

Extensions = tuple[tuple[str, str], ...]
"""Pairs of key and value, in the order of the message."""

_NAME = re.compile(r"(?:[^\0=,]|=2C|=3D)+")
_KEY = re.compile(r"[A-Za-z]+")


def escape_name(name: str) -> str:
    """Return `name` as a saslname. Raises ValueError for an empty name and for one with a NUL."""
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    if _NAME.fullmatch(escaped) is None:
        raise ValueError("a name of SASL has at least one character and no NUL")
    return escaped


def unescape_name(escaped: str) -> str:
    """Return the name that the saslname `escaped` stands for. Raises `SaslMessageError`."""
    if _NAME.fullmatch(escaped) is None:
        raise SaslMessageError("a name is empty, or has a comma or an equals sign that is not escaped")
    return escaped.replace("=2C", ",").replace("=3D", "=")


def text_of(message: bytes, limit: int) -> str:
    """Decode a message of at most `limit` bytes as UTF-8. Raises `SaslMessageError`."""
    if len(message) > limit:
        raise SaslMessageError(f"a message of {len(message)} bytes is longer than {limit} bytes, which is the limit")
    try:
        return message.decode()
    except UnicodeDecodeError:
        # Without its cause, whose text quotes the message.
        raise SaslMessageError("a message is not UTF-8") from None


def encode_header(flag: str, authorization_id: str) -> str:
    """Return the GS2 header; an empty authorization id is left out."""
    return f"{flag},{'a=' + escape_name(authorization_id) if authorization_id else ''},"


def split_header(text: str) -> tuple[str, str, str]:
    """Split a client's first message into the flag of the header, the authorization id or "", and the rest.

    Raises `SaslMessageError`.
    """
    flag, _, after_flag = text.partition(",")
    if flag.startswith("p="):
        raise SaslMessageError("the client demands channel binding, which no mechanism here supports")
    authorization, comma, rest = after_flag.partition(",")
    if flag not in ("n", "y") or not comma:
        raise SaslMessageError("a first message does not start with a GS2 header")
    if not authorization:
        return flag, "", rest
    if not authorization.startswith("a="):
        raise SaslMessageError("a GS2 header has something other than an authorization id")
    return flag, unescape_name(authorization[2:]), rest


def parse_extensions(pairs: Iterable[str], value: re.Pattern[str], reserved: frozenset[str]) -> Extensions:
    """Parse `key=value` pairs, whose keys are letters, each at most once and none of `reserved`.

    Raises `SaslMessageError`.
    """
    extensions: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or _KEY.fullmatch(key) is None or value.fullmatch(text) is None:
            raise SaslMessageError("an extension is not of the form key=value")
        if key in extensions or key in reserved:
            raise SaslMessageError("an attribute or extension is in a message twice, or in a wrong place")
        extensions[key] = text
    return tuple(extensions.items())


def check_extensions(extensions: Extensions, value: re.Pattern[str], reserved: frozenset[str]) -> None:
    """Raise ValueError if `parse_extensions` would refuse what is about to be sent."""
    try:
        parse_extensions([f"{key}={text}" for key, text in extensions], value, reserved)
    except SaslMessageError as error:
        raise ValueError(str(error)) from None
