"""ExpireDelegationToken (40), versions 1–2: refused; see `create_delegation_token`."""

from __future__ import annotations

from odradek.broker.handlers.create_delegation_token import NO_TIME_MS, why_refused
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def handle(
    services: Services, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    return error_response(request, why_refused(context), "")


def error_response(
    request: ExpireDelegationTokenRequest, code: ErrorCode, message: str
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME_MS)
