"""SaslAuthenticate (36), versions 0–2: the tokens of a mechanism, from the client and back (KIP-152, KIP-368).

A failure is SASL_AUTHENTICATION_FAILED after `connection.failed.authentication.delay.ms`, and the connection is closed.
Without a handshake before it, and on a listener without SASL, it is ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from odradek.broker.request.authentication import Authenticated, State
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.security.authentication.exchange import AuthenticationFailed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

_NO_SASL = "this listener has no authentication"
_NOT_EXPECTED = "SaslAuthenticate request received after successful authentication"


def handle(
    services: Services, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Coroutine[Any, Any, SaslAuthenticateResponse]:
    authentication = context.connection.authentication
    if authentication is None:
        return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, _NO_SASL)
    if authentication.state is not State.EXCHANGE:
        return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, _NOT_EXPECTED)
    answer = authentication.step(bytes(request.auth_bytes))
    return _response(answer) if isinstance(answer, Authenticated) else _wait_for(answer, request)


async def _wait_for(
    answer: Coroutine[Any, Any, Authenticated], request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    try:
        return _response(await answer)
    except AuthenticationFailed as error:
        return error_response(request, ErrorCode.SASL_AUTHENTICATION_FAILED, error.message)


def _response(answer: Authenticated) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(auth_bytes=answer.token, session_lifetime_ms=answer.lifetime_ms)


def error_response(request: SaslAuthenticateRequest, code: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message)
