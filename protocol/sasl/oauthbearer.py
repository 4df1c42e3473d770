"""The messages of OAUTHBEARER (RFC 7628; Kafka's `OAuthBearerClientInitialResponse`). ^A is the byte 1.

```
client   gs2-header ^A auth=Bearer token ^A [key=value ^A]… ^A
server   nothing, the token is accepted      or   a JSON object with the reason: {"status":"invalid_token"}
client   ^A after a JSON object, to end the exchange; the server then fails it
```

Keys are letters; values are printable ASCII, spaces, tabs and line ends (KIP-342). A token is the b64token of RFC 6750.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.gs2 import (
    Extensions,
    check_extensions,
    encode_header,
    parse_extensions,
    split_header,
    text_of,
)

OAUTHBEARER: Final = "OAUTHBEARER"
"""The mechanism's name in SASL."""
ACKNOWLEDGEMENT: Final = b"\x01"
"""A client's answer to the server's JSON object."""
MAXIMUM_MESSAGE_BYTES: Final = 64 * 1024
"""Inclusive. A token with hundreds of groups has 20 KiB."""

_SEPARATOR = "\x01"
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN = re.compile(r"[-._~+/A-Za-z0-9]+=*")
_AUTH = re.compile(r"bearer +(.+)", re.IGNORECASE | re.ASCII)
_RESERVED = frozenset({"auth"})


class ClientInitialResponse(msgspec.Struct, frozen=True):
    """The client's first message: a token, and extensions that a broker may use."""

    token: str
    authorization_id: str = ""
    extensions: Extensions = ()
    flag: str = "n"

    def __repr__(self) -> str:
        return "ClientInitialResponse(hidden)"

    def encode(self) -> bytes:
        """Raises ValueError for values that no message can have."""
        if _TOKEN.fullmatch(self.token) is None:
            raise ValueError("a bearer token has letters, digits and -._~+/ only, and = at its end")
        check_extensions(self.extensions, _VALUE, _RESERVED)
        pairs = [("auth", f"Bearer {self.token}"), *self.extensions]
        text = "".join([f"{key}={value}{_SEPARATOR}" for key, value in pairs])
        return (encode_header(self.flag, self.authorization_id) + _SEPARATOR + text + _SEPARATOR).encode()

    @classmethod
    def decode(cls, message: bytes) -> ClientInitialResponse:
        """Raises `SaslMessageError`.

        The key `auth` may be anywhere among the pairs, its scheme in any case; `encode` writes it first, as Kafka does.
        """
        flag, authorization_id, rest = split_header(text_of(message, MAXIMUM_MESSAGE_BYTES))
        if len(rest) < 2 or rest[0] != _SEPARATOR or not rest.endswith(_SEPARATOR * 2):
            raise SaslMessageError("a first message of OAUTHBEARER is not complete")
        pairs = dict(parse_extensions(rest[1:-2].split(_SEPARATOR), _VALUE, frozenset()))
        credentials = _AUTH.fullmatch(pairs.pop("auth", ""))
        if credentials is None or _TOKEN.fullmatch(credentials[1]) is None:
            raise SaslMessageError("a first message of OAUTHBEARER has no bearer token")
        return cls(credentials[1], authorization_id, tuple(pairs.items()), flag)


class TokenRefusal(
    msgspec.Struct, frozen=True, omit_defaults=True, rename={"openid_configuration": "openid-configuration"}
):
    """The server's JSON object: why a token is refused, and the scope or discovery document that would help."""

    status: str
    scope: str | None = None
    openid_configuration: str | None = None

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, message: bytes) -> TokenRefusal:
        """Raises `SaslMessageError`."""
        try:
            return msgspec.json.decode(text_of(message, MAXIMUM_MESSAGE_BYTES), type=cls)
        except msgspec.MsgspecError:
            raise SaslMessageError("the server's answer to a token is not a JSON object with a status") from None
