"""ExpireDelegationToken (API key 40): the owner or a renewer of a delegation token sets when it expires (KIP-48)."""

from odradek.protocol.schema import Message, binary, i16, i32, i64, message


@message(key=40, versions=(1, 2), flexible_since=2)
class ExpireDelegationTokenRequest(Message):
    """Versions 1–2, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896).
    """

    hmac: binary = b""  # of the token
    expiry_time_period_ms: i64 = 0  # from now; negative: at once


@message(key=40, versions=(1, 2), flexible_since=2)
class ExpireDelegationTokenResponse(Message):
    """Versions 1–2, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219).
    """

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
