"""RenewDelegationToken (39), versions 1–2: refused; see `create_delegation_token`."""

from __future__ import annotations

from odradek.broker.handlers.create_delegation_token import NO_TIME_MS, why_refused
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(
    services: Services, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    return error_response(request, why_refused(context), "")


def error_response(request: RenewDelegationTokenRequest, code: ErrorCode, message: str) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME_MS)
