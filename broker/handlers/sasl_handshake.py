"""SaslHandshake (17), versions 0–1: the client chooses its mechanism.

| | answer |
|---|---|
| a mechanism that the listener has | the mechanisms; then the client's tokens: in SaslAuthenticate after version 1, bare after version 0 |
| another mechanism | UNSUPPORTED_SASL_MECHANISM with the mechanisms, and the connection is closed |
| a listener without SASL, or too early after the last authentication | ILLEGAL_SASL_STATE |

On a listener without SASL connections count as authenticated from the start. A client that is configured for SASL then
reports the error to its user, instead of a closed connection.

Differs from Kafka: a client that authenticates again over TLS is answered after a pause. Java's client (4.3.1) reads one
answer in each turn while it does so. If it receives an earlier answer together with this one, this one stays in its
buffers, and its selector waits for the socket: up to `request.timeout.ms`, after which the client closes the connection.
In the pause the earlier answers are sent and read. Without TLS there are no such buffers.
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from odradek.broker.request.authentication import ReauthenticationRefused, State
from odradek.broker.request.context import CloseConnection, RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

PAUSE_SECONDS: Final = 0.05
"""Twice the 27 ms that a client on a busy machine took to read the answer before. It is paid once a session."""


def handle(
    services: Services, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Coroutine[Any, Any, SaslHandshakeResponse]:
    authentication = context.connection.authentication
    if authentication is None:
        return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, "")
    if authentication.state is State.DONE and not authentication.may_begin_again(services.clock.monotonic()):
        return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, "")
    try:
        is_enabled = authentication.begin(request.mechanism, takes_bare_tokens=context.api_version == 0)
    except ReauthenticationRefused as error:
        raise CloseConnection(str(error)) from error
    response = SaslHandshakeResponse(
        error_code=ErrorCode.NONE if is_enabled else ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        mechanisms=authentication.mechanisms,
    )
    return _after_pause(response) if authentication.is_complete and authentication.is_encrypted else response


async def _after_pause(response: SaslHandshakeResponse) -> SaslHandshakeResponse:
    await asyncio.sleep(PAUSE_SECONDS)
    return response


def error_response(request: SaslHandshakeRequest, code: ErrorCode, message: str) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=code)
