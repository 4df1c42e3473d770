"""CreateDelegationToken (38), versions 1–3: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Apache Kafka returns this code on a connection without authentication, and no connection here has any. The same holds
for RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
NO_TIME_MS = -1
_FIRST_VERSION_WITH_REQUESTERS = 3
_USER = "User"
_ANONYMOUS = "ANONYMOUS"  # Kafka's name of an unauthenticated user


def handle(
    services: Services, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    response = error_response(request, NOT_ALLOWED, "")
    if context.api_version >= _FIRST_VERSION_WITH_REQUESTERS:
        response.token_requester_principal_type, response.token_requester_principal_name = _USER, _ANONYMOUS
    return response


def error_response(
    request: CreateDelegationTokenRequest, code: ErrorCode, message: str
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=request.owner_principal_type or _USER,
        principal_name=request.owner_principal_name or _ANONYMOUS,
        issue_timestamp_ms=NO_TIME_MS,
        expiry_timestamp_ms=NO_TIME_MS,
        max_timestamp_ms=NO_TIME_MS,
    )
