"""SaslAuthenticate (API key 36): client and broker exchange the tokens of a SASL mechanism (KIP-152).

It repeats until the mechanism is done; on a connection in use, it renews the session (KIP-368).
"""

from typing import Annotated

from odradek.protocol.schema import Message, binary, i16, i64, ignorable, message, since, string


@message(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest(Message):
    """Versions 0–2, flexible from 2.

    v1 says that the client can authenticate again (KIP-368).
    """

    auth_bytes: binary = b""  # as the mechanism defines them


@message(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse(Message):
    """Versions 0–2, flexible from 2.

    v1 tells how long the session lasts (KIP-368). SASL_AUTHENTICATION_FAILED (58) comes with a text, where a broker of
    v0 handshakes could only close the connection.
    """

    error_code: i16 = 0
    error_message: string | None = ""
    auth_bytes: binary = b""
    # Authenticate again within this; 0: the session has no end.
    session_lifetime_ms: Annotated[i64, since(1), ignorable] = 0
