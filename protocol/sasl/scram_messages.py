"""The four messages of SCRAM (RFC 5802, section 7; Kafka's `ScramMessages`).

```
client-first   gs2-header n=saslname,r=nonce[,extensions]
server-first   r=nonce,s=base64(salt),i=iterations[,extensions]
client-final   c=base64(gs2-header),r=nonce[,extensions],p=base64(proof)
server-final   v=base64(signature)[,extensions]   or   e=error[,extensions]
```

The nonce of server-first starts with the client's; client-final repeats it. The GS2 header is in `gs2`. Values of
extensions are any characters but NUL and comma. Kafka has one extension: `tokenauth=true` in client-first, for a
delegation token in place of a user and password (KIP-48).

`encode` gives the bytes that `decode` was given, so that proofs are computed over what was sent.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import Final

import msgspec

from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.gs2 import (
    Extensions,
    check_extensions,
    encode_header,
    escape_name,
    parse_extensions,
    split_header,
    text_of,
    unescape_name,
)

MAXIMUM_MESSAGE_BYTES: Final = 16 * 1024
"""Inclusive. A message has a name, a nonce and a few digests; longer ones are refused before they are split."""
TOKEN_AUTHENTICATION: Final = ("tokenauth", "true")
"""The extension by which a client authenticates with a delegation token (KIP-48)."""

_VALUE = re.compile(r"[^\0,]+")
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_ITERATIONS = re.compile(r"[1-9][0-9]{0,9}")
_RESERVED = frozenset("anrmcpsive")  # the attributes of RFC 5802, section 5.1


class ClientFirst(msgspec.Struct, frozen=True):
    """The client's first message: who it is, and its nonce. `flag` is that of the GS2 header."""

    username: str
    nonce: str
    authorization_id: str = ""
    extensions: Extensions = ()
    flag: str = "n"

    @property
    def header(self) -> str:
        return encode_header(self.flag, self.authorization_id)

    @property
    def bare(self) -> str:
        """The message without its GS2 header: the first part of AuthMessage."""
        return f"n={escape_name(self.username)},r={_checked_nonce(self.nonce)}{_encoded(self.extensions)}"

    @property
    def is_token(self) -> bool:
        """Whether name and password are a delegation token's. Kafka reads the value in any case."""
        key, value = TOKEN_AUTHENTICATION
        return any(name == key and text.lower() == value for name, text in self.extensions)

    def encode(self) -> bytes:
        """Raises ValueError for values that no message can have."""
        return (self.header + self.bare).encode()

    @classmethod
    def decode(cls, message: bytes) -> ClientFirst:
        """Raises `SaslMessageError`."""
        flag, authorization_id, rest = split_header(text_of(message, MAXIMUM_MESSAGE_BYTES))
        name, nonce, *extensions = _attributes(rest, "n", "r")
        return cls(unescape_name(name), _nonce(nonce), authorization_id, _extensions(extensions), flag)


class ServerFirst(msgspec.Struct, frozen=True):
    """The server's first message: the nonce of both, and how the password is salted."""

    nonce: str
    salt: bytes
    iterations: int
    extensions: Extensions = ()

    @property
    def text(self) -> str:
        """The message as text: the second part of AuthMessage."""
        nonce, salt = _checked_nonce(self.nonce), b64encode(self.salt).decode()
        return f"r={nonce},s={salt},i={self.iterations}{_encoded(self.extensions)}"

    def encode(self) -> bytes:
        return self.text.encode()

    @classmethod
    def decode(cls, message: bytes) -> ServerFirst:
        """Raises `SaslMessageError`."""
        text = text_of(message, MAXIMUM_MESSAGE_BYTES)
        nonce, salt, iterations, *extensions = _attributes(text, "r", "s", "i")
        if _ITERATIONS.fullmatch(iterations) is None:
            raise SaslMessageError("the number of iterations is not a positive number")
        return cls(_nonce(nonce), _base64(salt), int(iterations), _extensions(extensions))


class ClientFinal(msgspec.Struct, frozen=True):
    """The client's final message: the GS2 header again, the nonce of both, and the proof."""

    channel_binding: bytes
    nonce: str
    proof: bytes
    extensions: Extensions = ()

    def __repr__(self) -> str:
        return "ClientFinal(hidden)"

    @property
    def without_proof(self) -> str:
        """The message up to its proof: the third part of AuthMessage."""
        binding, nonce = b64encode(self.channel_binding).decode(), _checked_nonce(self.nonce)
        return f"c={binding},r={nonce}{_encoded(self.extensions)}"

    def encode(self) -> bytes:
        return f"{self.without_proof},p={b64encode(self.proof).decode()}".encode()

    @classmethod
    def decode(cls, message: bytes) -> ClientFinal:
        """Raises `SaslMessageError`."""
        rest, separator, proof = text_of(message, MAXIMUM_MESSAGE_BYTES).rpartition(",p=")
        if not separator:
            raise SaslMessageError("a final message has no proof")
        binding, nonce, *extensions = _attributes(rest, "c", "r")
        return cls(_base64(binding), _nonce(nonce), _base64(proof), _extensions(extensions))


class ServerFinal(msgspec.Struct, frozen=True):
    """The server's final message: its signature, or why the authentication failed. One of both is not empty."""

    signature: bytes = b""
    error: str = ""
    extensions: Extensions = ()

    def encode(self) -> bytes:
        """Raises ValueError for values that no message can have."""
        if bool(self.signature) == bool(self.error) or (self.error and _VALUE.fullmatch(self.error) is None):
            raise ValueError("the final message of a server has either a signature or an error")
        outcome = f"e={self.error}" if self.error else f"v={b64encode(self.signature).decode()}"
        return (outcome + _encoded(self.extensions)).encode()

    @classmethod
    def decode(cls, message: bytes) -> ServerFinal:
        """Raises `SaslMessageError`."""
        text = text_of(message, MAXIMUM_MESSAGE_BYTES)
        if text.startswith("e="):
            error, *extensions = _attributes(text, "e")
            return cls(b"", _checked_value(error), _extensions(extensions))
        signature, *extensions = _attributes(text, "v")
        if not signature:
            raise SaslMessageError("a signature is empty")
        return cls(_base64(signature), "", _extensions(extensions))


def auth_message(client_first: ClientFirst, server_first: ServerFirst, client_final: ClientFinal) -> bytes:
    """Return AuthMessage, which proof and signature cover."""
    return f"{client_first.bare},{server_first.text},{client_final.without_proof}".encode()


def _attributes(text: str, *names: str) -> list[str]:
    """Split a message into the values of the attributes `names`, in this order, and the extensions after them."""
    parts = text.split(",")
    if parts[0].startswith("m="):
        # Differs from Kafka, which ignores it: the sender demands an extension that is not understood (RFC 5802, 5.1).
        raise SaslMessageError("a message demands an extension that is not supported")
    if len(parts) < len(names):
        raise SaslMessageError("a message ends too early")
    for at, name in enumerate(names):
        if not parts[at].startswith(f"{name}="):
            raise SaslMessageError(f"a message does not have its attribute {name} in its place")
        parts[at] = parts[at][2:]
    return parts


def _extensions(parts: list[str]) -> Extensions:
    return parse_extensions(parts, _VALUE, _RESERVED)


def _encoded(extensions: Extensions) -> str:
    check_extensions(extensions, _VALUE, _RESERVED)
    return "".join([f",{key}={value}" for key, value in extensions])


def _nonce(text: str) -> str:
    if _NONCE.fullmatch(text) is None:
        raise SaslMessageError("a nonce is empty or has characters that cannot be printed")
    return text


def _checked_nonce(nonce: str) -> str:
    if _NONCE.fullmatch(nonce) is None:
        raise ValueError("a nonce has at least one character, all printable, none a comma")
    return nonce


def _checked_value(text: str) -> str:
    if _VALUE.fullmatch(text) is None:
        raise SaslMessageError("a value is empty or has a NUL")
    return text


def _base64(text: str) -> bytes:
    """Decode canonical base64: one text for each value."""
    try:
        value = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslMessageError("a value is not base64") from None
    if b64encode(value).decode() != text:
        raise SaslMessageError("a value is not canonical base64")
    return value
