"""DescribeAcls (29), versions 1–3: the access rules that a filter matches, by the resources that they are for.

Without an authorizer the answer is SECURITY_DISABLED. A code 0 (UNKNOWN) in the filter closes the connection, as in
Kafka; other unknown codes match nothing. The resources are sorted, as are the rules of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from odradek.broker.request.context import CloseConnection, RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import TimeSlice
from odradek.broker.security.access.rule import AccessRule, RuleFilter
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_RULES_AT_ONCE = 1000


class Filter(Protocol):
    """The fields of the filters of both requests that have filters."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


async def handle(services: Services, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    if services.authorizer is None:
        raise no_access_rules("No Authorizer is configured on the broker.")
    time_slice = services.time_slices.begin(context.connection)
    resources: dict[tuple[int, int, str], list[AclDescription]] = {}
    for rule in await time_slice.sort(await find_rules(services, time_slice, filter_of(request))):
        rows = resources.setdefault((rule.resource_type, rule.pattern_type, rule.name), [])
        rows.append(AclDescription(rule.principal, rule.host, rule.operation, rule.permission))
        await time_slice.step()
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(resource_type, name, pattern_type, rows)
            for (resource_type, pattern_type, name), rows in resources.items()
        ]
    )


def error_response(request: DescribeAclsRequest, code: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message or None)


def no_access_rules(words: str = "No Authorizer is configured.") -> KafkaError:
    """Return the error of a broker without an authorizer; it begins with Kafka's `words`."""
    return KafkaError(ErrorCode.SECURITY_DISABLED, f"{words} There are no access rules: all is allowed.")


def filter_of(wanted: Filter) -> RuleFilter:
    """Return the filter in a request. Raises CloseConnection for a code that no client may send."""
    check_codes(wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type)
    return RuleFilter(
        ResourceType(wanted.resource_type_filter),
        PatternType(wanted.pattern_type_filter),
        wanted.resource_name_filter,
        wanted.principal_filter,
        wanted.host_filter,
        Operation(wanted.operation),
        PermissionType(wanted.permission_type),
    )


def check_codes(*codes: int) -> None:
    """Raise CloseConnection for the code 0, which only stands for codes that a receiver does not know."""
    if 0 in codes:
        raise CloseConnection("an access rule or filter has the code 0 (UNKNOWN)")


async def find_rules(services: Services, time_slice: TimeSlice, wanted: RuleFilter) -> list[AccessRule]:
    """Return the rules that a filter matches, in slices of time. A filter for one rule needs no search."""
    rules = services.metadata.image.rules
    single = wanted.single_rule()
    if single is not None:
        stored = rules.find(single)
        return [] if stored is None else [stored.rule]
    found: list[AccessRule] = []
    searched = 0
    for shard in rules.shards:
        found += _matching(wanted, (stored.rule for stored in shard.values()))
        searched += len(shard)
        if searched >= _RULES_AT_ONCE:
            searched = 0
            await time_slice.step()
    return found


def _matching(wanted: RuleFilter, rules: Iterable[AccessRule]) -> list[AccessRule]:
    return [rule for rule in rules if wanted.matches(rule)]
