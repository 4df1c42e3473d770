"""DescribeDelegationToken (API key 41)."""

from typing import Annotated

from protocol.schema import Message, Structure, binary, i16, i32, i64, message, since, string


class DescribeDelegationTokenOwner(Structure):
    principal_type: string = ""
    principal_name: string = ""


@message(key=41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenRequest(Message):
    """DescribeDelegationTokenRequest, versions 1–3, flexible from 2."""

    owners: list[DescribeDelegationTokenOwner] | None = []


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
    hmac: binary = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


@message(key=41, versions=(1, 3), flexible_since=2)
class DescribeDelegationTokenResponse(Message):
    """DescribeDelegationTokenResponse, versions 1–3, flexible from 2."""

    error_code: i16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: i32 = 0
