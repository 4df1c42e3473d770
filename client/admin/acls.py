"""Access rules: create, find and delete them (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.client.admin.acl_values import (
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    AclRule,
)
from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import Results
from odradek.client.errors import ClientError, broker_error
from odradek.client.network.connection import Connection
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

Rules = tuple[AclRule, ...]


async def create_acls(calls: Calls, rules: Iterable[AclRule], *, timeout_ms: int | None) -> Results[AclRule, None]:
    tried = "create an access rule"

    async def attempt(left: Sequence[AclRule]) -> Outcomes[AclRule, None]:
        connection = await calls.cluster.any_connection()
        creations = [
            AclCreation(
                rule.resource_type,
                rule.resource_name,
                rule.pattern_type,
                rule.principal,
                rule.host,
                rule.operation,
                rule.permission,
            )
            for rule in left
        ]
        response = await connection.send(CreateAclsRequest(creations), CreateAclsResponse)
        return {
            rule: broker_error(result.error_code, tried, result.error_message, broker=connection.name)
            if result.error_code
            else None
            for rule, result in zip(left, response.results, strict=False)
        }

    return await calls.for_each(tried, rules, attempt, timeout_ms)


async def describe_acls(calls: Calls, wanted: AclFilter, *, timeout_ms: int | None) -> Rules:
    tried = "list access rules"

    async def call(connection: Connection) -> Rules:
        response = await connection.send(DescribeAclsRequest(*_conditions(wanted)), DescribeAclsResponse)
        if response.error_code:
            raise broker_error(response.error_code, tried, response.error_message, broker=connection.name)
        return tuple(_rule(resource, acl) for resource in response.resources for acl in resource.acls)

    return await calls.once(tried, call, timeout_ms)


async def delete_acls(
    calls: Calls, filters: Iterable[AclFilter], *, timeout_ms: int | None
) -> Results[AclFilter, Rules]:
    tried = "delete access rules"

    async def attempt(left: Sequence[AclFilter]) -> Outcomes[AclFilter, Rules]:
        connection = await calls.cluster.any_connection()
        wanted = [DeleteAclsFilter(*_conditions(one)) for one in left]
        response = await connection.send(DeleteAclsRequest(wanted), DeleteAclsResponse)
        outcomes: dict[AclFilter, Rules | ClientError] = {}
        for one, result in zip(left, response.filter_results, strict=False):
            failed = next((acl for acl in result.matching_acls if acl.error_code), None)
            code, message = result.error_code, result.error_message
            if not code and failed is not None:
                code, message = failed.error_code, failed.error_message
            outcomes[one] = (
                broker_error(code, tried, message, broker=connection.name)
                if code
                else tuple(_rule(acl, acl) for acl in result.matching_acls)
            )
        return outcomes

    return await calls.for_each(tried, filters, attempt, timeout_ms)


def _conditions(wanted: AclFilter) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    """Return the fields of a filter in the order of both requests that have filters."""
    return (
        wanted.resource_type,
        wanted.resource_name,
        wanted.pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission,
    )


def _rule(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl, acl: AclDescription | DeleteAclsMatchingAcl
) -> AclRule:
    return AclRule(
        resource_type=AclResourceType(resource.resource_type),
        resource_name=resource.resource_name,
        pattern_type=AclPatternType(resource.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=AclOperation(acl.operation),
        permission=AclPermission(acl.permission_type),
    )
