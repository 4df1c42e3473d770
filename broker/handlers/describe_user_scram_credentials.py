"""DescribeUserScramCredentials (50), version 0: no credentials, as from an Apache Kafka without any.

Without names the response is empty. A named user is RESOURCE_NOT_FOUND, one that is named twice DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(
    services: Services, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    named = Counter(user.name for user in request.users or [])
    rows = []
    for name, times in named.items():
        rows.append(_row(name, times))
        yield
    return DescribeUserScramCredentialsResponse(results=rows)


def error_response(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=message)


def _row(name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        code, message = ErrorCode.DUPLICATE_RESOURCE, f"user {name!r} is named {times} times"
    else:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, f"user {name!r} has no credentials"
    return DescribeUserScramCredentialsResult(name, code, message, [])
