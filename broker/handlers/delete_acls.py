"""DeleteAcls (31), versions 1–3: delete the access rules that filters match; answered when this broker has none left.

Each filter has its own row with the rules that it matched before any was deleted. A filter with a code that does not
exist is INVALID_REQUEST; with the code 0 it closes the connection, as in Kafka. Without an authorizer every filter is
SECURITY_DISABLED. Filters that match the same rules again and again are POLICY_VIOLATION, because of their rows.
"""

from __future__ import annotations

from odradek.broker.handlers.describe_acls import filter_of, find_rules, no_access_rules
from odradek.broker.metadata.administration.access_rules import delete_rules
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.security.access.rule import AccessRule, RuleFilter
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

_MOST_ROWS = 100_000
"""The most rows of an answer, unless every rule is in two."""


async def handle(services: Services, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    if services.authorizer is None:
        raise no_access_rules()
    time_slice = services.time_slices.begin(context.connection)
    filters = await time_slice.map(filter_of, request.filters)
    rows_left = max(_MOST_ROWS, 2 * len(services.metadata.image.rules))
    found: list[tuple[DeleteAclsFilterResult, list[AccessRule]]] = []
    for wanted in filters:
        await time_slice.step()
        result, rules = DeleteAclsFilterResult(error_message=None), []
        unknown = _unknown_part(wanted)
        if unknown:
            result = DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, unknown)
        else:
            rules = await find_rules(services, time_slice, wanted)
        rows_left -= len(rules)
        if rows_left < 0:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "the filters match the same rules too often")
        found.append((result, rules))
    try:
        await delete_rules(services.metadata, [rule for _, rules in found for rule in rules], time_slice.step)
    except KafkaError as error:
        return error_response(request, error.code, error.detail)
    for result, rules in found:
        for rule in rules:
            await time_slice.step()
            result.matching_acls.append(_row(rule))
    return DeleteAclsResponse(filter_results=[result for result, _ in found])


def error_response(request: DeleteAclsRequest, code: ErrorCode, message: str) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(code, message or None) for _ in request.filters])


def _unknown_part(wanted: RuleFilter) -> str:
    """Return Kafka's text for a filter with a code that does not exist, or an empty one."""
    if not (wanted.resource_type and wanted.pattern_type):
        return "Unknown patternFilter."
    return "" if wanted.operation and wanted.permission else "Unknown entryFilter."


def _row(rule: AccessRule) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        ErrorCode.NONE,
        None,
        rule.resource_type,
        rule.name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )
