"""SaslAuthenticate (API key 36): client and broker exchange the tokens of a SASL mechanism (KIP-152).

The exchange repeats until the mechanism has finished. On an authenticated connection it renews the session (KIP-368).
"""

from typing import Annotated

from odradek.protocol.schema import Message, binary, i16, i64, ignorable, message, since, string


@message(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest(Message):
    """Versions 0–2, flexible from 2.

    With v1 a client declares that it can authenticate again (KIP-368).
    """

    auth_bytes: binary = b""  # as the mechanism defines them

    def __repr__(self) -> str:
        return "SaslAuthenticateRequest(hidden)"


@message(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse(Message):
    """Versions 0–2, flexible from 2.

    v1 adds the lifetime of the session (KIP-368). SASL_AUTHENTICATION_FAILED (58) has a text; after a handshake of v0 a
    broker can only close the connection.
    """

    error_code: i16 = 0
    error_message: string | None = ""
    auth_bytes: binary = b""
    # Authenticate again within this time; 0: no limit.
    session_lifetime_ms: Annotated[i64, since(1), ignorable] = 0

    def __repr__(self) -> str:
        return f"SaslAuthenticateResponse({self.error_code}, hidden)"
