"""DescribeDelegationToken (API key 41): a client lists the delegation tokens that it may see (KIP-48)."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, binary, i16, i32, i64, message, since, string


class DescribeDelegationTokenOwner(Structure):
    principal_type: string = ""
    principal_name: string = ""


@message(key=41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenRequest(Message):
    """Versions 1–3, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896). v3 changes only the response.
    """

    owners: list[DescribeDelegationTokenOwner] | None = []  # None for all


class DescribedDelegationTokenRenewer(Structure):
    principal_type: string = ""
    principal_name: string = ""


class DescribedDelegationToken(Structure):
    principal_type: string = ""
    principal_name: string = ""
    token_requester_principal_type: Annotated[string, since(3)] = ""
    token_requester_principal_name: Annotated[string, since(3)] = ""
    issue_timestamp: i64 = 0
    expiry_timestamp: i64 = 0
    max_timestamp: i64 = 0
    token_id: string = ""
    hmac: binary = b""  # the secret: its base64 is the password
    renewers: list[DescribedDelegationTokenRenewer] = []


@message(key=41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenResponse(Message):
    """Versions 1–3, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219). v3 adds the principal that requested the token,
    beside its owner (KIP-373).
    """

    error_code: i16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: i32 = 0
