"""The one message of PLAIN (RFC 4616): authorization id NUL user NUL password, in UTF-8.

Parsed as by Kafka's `PlainSaslServer`, whose error texts these are; but a message that is not UTF-8 is refused, where
Kafka replaces the bytes that it does not understand.
"""

from __future__ import annotations

from typing import Final

import msgspec

from odradek.protocol.sasl.errors import MissingPasswordError, SaslMessageError
from odradek.protocol.sasl.gs2 import text_of

PLAIN: Final = "PLAIN"
"""The mechanism's name in SASL."""
MAXIMUM_MESSAGE_BYTES: Final = 16 * 1024
"""Inclusive. RFC 4616 demands that servers accept names and passwords of 255 bytes."""


class PlainMessage(msgspec.Struct, frozen=True):
    """What a client of PLAIN sends."""

    username: str
    password: str
    authorization_id: str = ""

    def __repr__(self) -> str:
        return "PlainMessage(hidden)"

    def encode(self) -> bytes:
        """Raises ValueError for an empty name or password and for any value with a NUL."""
        parts = (self.authorization_id, self.username, self.password)
        if not self.username or not self.password or any("\0" in part for part in parts):
            raise ValueError("PLAIN needs a user and a password, and can send no NUL")
        return "\0".join(parts).encode()

    @classmethod
    def decode(cls, message: bytes) -> PlainMessage:
        """Raises `SaslMessageError`; its text may be shown to the client."""
        tokens = text_of(message, MAXIMUM_MESSAGE_BYTES).split("\0", 3)
        if len(tokens) != 3:
            raise SaslMessageError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, username, password = tokens
        if not username:
            raise SaslMessageError("Authentication failed: username not specified")
        if not password:
            # With an authorization id it may be "user NUL password NUL" of a client with a fault: name no password.
            raise MissingPasswordError("" if authorization_id else username)
        return cls(username, password, authorization_id)
