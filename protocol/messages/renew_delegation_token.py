"""RenewDelegationToken (API key 39): the owner or a renewer of a delegation token postpones its expiry (KIP-48)."""

from odradek.protocol.schema import Message, binary, i16, i32, i64, message


@message(key=39, versions=(1, 2), flexible_since=2)
class RenewDelegationTokenRequest(Message):
    """Versions 1–2, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896).
    """

    hmac: binary = b""  # of the token
    renew_period_ms: i64 = 0  # from now; negative for the broker's `delegation.token.expiry.time.ms`


@message(key=39, versions=(1, 2), flexible_since=2)
class RenewDelegationTokenResponse(Message):
    """Versions 1–2, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219).
    """

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
