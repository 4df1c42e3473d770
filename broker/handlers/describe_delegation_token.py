"""DescribeDelegationToken (41), versions 1–3: refused; see `create_delegation_token`."""

from __future__ import annotations

from odradek.broker.handlers.create_delegation_token import why_refused
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(
    services: Services, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    return error_response(request, why_refused(context), "")


def error_response(
    request: DescribeDelegationTokenRequest, code: ErrorCode, message: str
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=code)
