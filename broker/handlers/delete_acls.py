"""DeleteAcls (31), versions 1–3: SECURITY_DISABLED for each filter, as from an Apache Kafka without an authorizer."""

from __future__ import annotations

from odradek.broker.handlers.describe_acls import NO_ACCESS_RULES
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(services: Services, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    return error_response(request, NO_ACCESS_RULES.code, NO_ACCESS_RULES.detail)


def error_response(request: DeleteAclsRequest, code: ErrorCode, message: str) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(code, message or None) for _ in request.filters])
