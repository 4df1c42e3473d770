"""CreateDelegationToken (API key 38): a client obtains a token with which others authenticate as this client (KIP-48).

Workers of a cluster authenticate with it by SCRAM, instead of sharing a keytab or password.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, binary, i16, i32, i64, message, since, string


class CreatableRenewers(Structure):
    principal_type: string = ""
    principal_name: string = ""


@message(key=38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenRequest(Message):
    """Versions 1–3, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896). v3 can create a token for another owner (KIP-373).
    """

    owner_principal_type: Annotated[string | None, since(3)] = ""  # None, as the name: the client itself
    owner_principal_name: Annotated[string | None, since(3)] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: i64 = 0  # -1 for the broker's `delegation.token.max.lifetime.ms`


@message(key=38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenResponse(Message):
    """Versions 1–3, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219). v3 adds the principal that requested the token,
    beside its owner (KIP-373).
    """

    error_code: i16 = 0
    principal_type: string = ""
    principal_name: string = ""
    token_requester_principal_type: Annotated[string, since(3)] = ""
    token_requester_principal_name: Annotated[string, since(3)] = ""
    issue_timestamp_ms: i64 = 0
    expiry_timestamp_ms: i64 = 0  # unless renewed before
    max_timestamp_ms: i64 = 0  # a renewal cannot exceed it
    token_id: string = ""
    hmac: binary = b""  # the secret: its base64 is the password
    throttle_time_ms: i32 = 0
