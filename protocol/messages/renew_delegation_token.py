"""RenewDelegationToken (API key 39)."""

from protocol.schema import Message, binary, i16, i32, i64, message


@message(key=39, versions=(1, 2), flexible_since=2)
class RenewDelegationTokenRequest(Message):
    """RenewDelegationTokenRequest, versions 1–2, flexible from 2."""

    hmac: binary = b""
    renew_period_ms: i64 = 0


@message(key=39, versions=(1, 2), flexible_since=2)
class RenewDelegationTokenResponse(Message):
    """RenewDelegationTokenResponse, versions 1–2, flexible from 2."""

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
