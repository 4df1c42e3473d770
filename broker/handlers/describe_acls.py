"""DescribeAcls (29), versions 1–3: SECURITY_DISABLED, as from an Apache Kafka without an authorizer.

There are no access rules: every client may do everything.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_ACCESS_RULES = KafkaError(ErrorCode.SECURITY_DISABLED, "there are no access rules: every client may do everything")


def handle(services: Services, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return error_response(request, NO_ACCESS_RULES.code, NO_ACCESS_RULES.detail)


def error_response(request: DescribeAclsRequest, code: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message or None)
