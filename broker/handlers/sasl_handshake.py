"""SaslHandshake (17), versions 0–1: ILLEGAL_SASL_STATE, without mechanisms.

Apache Kafka returns this code on a listener without SASL, whose connections count as authenticated from the start. A
client that is configured for SASL then reports the error to its user, instead of a closed connection.
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
