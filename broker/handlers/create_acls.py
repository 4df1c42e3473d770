"""CreateAcls (30), versions 1–3: create access rules; answered when this broker decides by them.

| in a rule | answer |
|---|---|
| a code that no client may send (0) | the connection is closed |
| ANY or MATCH | UNKNOWN_SERVER_ERROR for all rules of the request, as in Kafka |
| another code that does not exist, an empty name, a principal without a colon, … | INVALID_REQUEST for this rule |
| it exists already | NONE |

The other rules are created. Without an authorizer every rule is SECURITY_DISABLED. A rule may be for a resource that
does not exist.
"""

from __future__ import annotations

from odradek.broker.handlers.describe_acls import check_codes, no_access_rules
from odradek.broker.metadata.administration.access_rules import create_rules
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.security.access.rule import AccessRule, check_rule
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(services: Services, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    if services.authorizer is None:
        raise no_access_rules()
    time_slice = services.time_slices.begin(context.connection)
    await time_slice.map(_check_codes, request.creations)
    rules = await time_slice.map(_rule, request.creations)
    results = []
    valid = []
    for rule in rules:
        await time_slice.step()
        result = AclCreationResult()
        try:
            check_rule(rule)
        except KafkaError as error:
            result = AclCreationResult(error.code, error.detail)
        else:
            valid.append((rule, result))
        results.append(result)
    try:
        await create_rules(services.metadata, [rule for rule, _ in valid], time_slice.step)
    except KafkaError as error:
        for _, result in valid:
            result.error_code, result.error_message = error.code, error.detail
    return CreateAclsResponse(results=results)


def error_response(request: CreateAclsRequest, code: ErrorCode, message: str) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(code, message or None) for _ in request.creations])


def _check_codes(creation: AclCreation) -> None:
    check_codes(creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type)


def _rule(creation: AclCreation) -> AccessRule:
    rule = AccessRule(
        ResourceType(creation.resource_type),
        PatternType(creation.resource_pattern_type),
        creation.resource_name,
        creation.principal,
        creation.host,
        Operation(creation.operation),
        PermissionType(creation.permission_type),
    )
    if (
        rule.resource_type is ResourceType.ANY
        or rule.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or rule.operation is Operation.ANY
        or rule.permission is PermissionType.ANY
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return rule
