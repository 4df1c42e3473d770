"""CreateAcls (30), versions 1–3: SECURITY_DISABLED for each, as from an Apache Kafka without an authorizer."""

from __future__ import annotations

from odradek.broker.handlers.describe_acls import NO_ACCESS_RULES
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(services: Services, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    return error_response(request, NO_ACCESS_RULES.code, NO_ACCESS_RULES.detail)


def error_response(request: CreateAclsRequest, code: ErrorCode, message: str) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(code, message or None) for _ in request.creations])
