"""SaslAuthenticate (36), versions 0–2: ILLEGAL_SASL_STATE, for the reason in `sasl_handshake`."""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

_NO_SASL = "this listener has no authentication"


def handle(services: Services, context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, _NO_SASL)


def error_response(request: SaslAuthenticateRequest, code: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message)
