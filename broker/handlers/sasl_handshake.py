"""SaslHandshake (17), versions 0–1: ILLEGAL_SASL_STATE, and no mechanism to choose.

That is what Apache Kafka says on a listener without SASL, where every connection counts as authenticated from its
start. A client that is set up for SASL tells its user so, instead of a connection that was closed.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(services: Services, context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, "")


def error_response(request: SaslHandshakeRequest, code: ErrorCode, message: str) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=code)
