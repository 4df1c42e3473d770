"""CreateDelegationToken (API key 38)."""

from typing import Annotated

from protocol.schema import Message, Structure, binary, i16, i32, i64, message, since, string


class CreatableRenewers(Structure):
    principal_type: string = ""
    principal_name: string = ""


@message(key=38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenRequest(Message):
    """CreateDelegationTokenRequest, versions 1–3, flexible from 2."""

    owner_principal_type: Annotated[string | None, since(3)] = ""
    owner_principal_name: Annotated[string | None, since(3)] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: i64 = 0


@message(key=38, versions=(1, 3), flexible_since=2)
class CreateDelegationTokenResponse(Message):
    """CreateDelegationTokenResponse, versions 1–3, flexible from 2."""

    error_code: i16 = 0
    principal_type: string = ""
    principal_name: string = ""
    token_requester_principal_type: Annotated[string, since(3)] = ""
    token_requester_principal_name: Annotated[string, since(3)] = ""
    issue_timestamp_ms: i64 = 0
    expiry_timestamp_ms: i64 = 0
    max_timestamp_ms: i64 = 0
    token_id: string = ""
    hmac: binary = b""
    throttle_time_ms: i32 = 0
