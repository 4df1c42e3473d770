"""ExpireDelegationToken (API key 40)."""

from protocol.schema import Message, binary, i16, i32, i64, message


@message(key=40, versions=(1, 2), flexible_since=2)
class ExpireDelegationTokenRequest(Message):
    """ExpireDelegationTokenRequest, versions 1–2, flexible from 2."""

    hmac: binary = b""
    expiry_time_period_ms: i64 = 0


@message(key=40, versions=(1, 2), flexible_since=2)
class ExpireDelegationTokenResponse(Message):
    """ExpireDelegationTokenResponse, versions 1–2, flexible from 2."""

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
