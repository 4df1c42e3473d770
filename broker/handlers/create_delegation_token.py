"""CreateDelegationToken (38), versions 1–3: there are no delegation tokens, as in Kafka without their secret key.

| connection | answer |
|---|---|
| PLAINTEXT, or TLS without a client certificate | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED |
| any other | DELEGATION_TOKEN_AUTH_DISABLED |

The same holds for RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

NO_TIME_MS = -1
_FIRST_VERSION_WITH_REQUESTERS = 3


def handle(
    services: Services, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = context.connection.principal
    response = _response(request, why_refused(context), requester)
    if context.api_version >= _FIRST_VERSION_WITH_REQUESTERS:
        response.token_requester_principal_type = requester.kind
        response.token_requester_principal_name = requester.name
    return response


def why_refused(context: RequestContext) -> ErrorCode:
    """Return the error of every request for delegation tokens (`KafkaApis.allowTokenRequests`)."""
    connection = context.connection
    if connection.authentication is None and connection.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def error_response(
    request: CreateDelegationTokenRequest, code: ErrorCode, message: str
) -> CreateDelegationTokenResponse:
    return _response(request, code, ANONYMOUS)


def _response(
    request: CreateDelegationTokenRequest, code: ErrorCode, requester: Principal
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=request.owner_principal_type or requester.kind,
        principal_name=request.owner_principal_name or requester.name,
        issue_timestamp_ms=NO_TIME_MS,
        expiry_timestamp_ms=NO_TIME_MS,
        max_timestamp_ms=NO_TIME_MS,
    )
