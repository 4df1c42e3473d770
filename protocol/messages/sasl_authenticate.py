"""SaslAuthenticate (API key 36)."""

from typing import Annotated

from protocol.schema import Message, binary, i16, i64, ignorable, message, since, string


@message(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest(Message):
    """SaslAuthenticateRequest, versions 0–2, flexible from 2."""

    auth_bytes: binary = b""


@message(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse(Message):
    """SaslAuthenticateResponse, versions 0–2, flexible from 2."""

    error_code: i16 = 0
    error_message: string | None = ""
    auth_bytes: binary = b""
    session_lifetime_ms: Annotated[i64, since(1), ignorable] = 0
