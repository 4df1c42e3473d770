"""DescribeGroups (15), versions 0–6: state and members of groups of the classic protocol.

Only a stable group is described with the metadata and assignments of its members. A group that does not exist, or is of
another type, is described as Dead without an error, from version 6 on (KIP-1043) as GROUP_ID_NOT_FOUND. The authorized
operations (version 3, KIP-430) are set if the request includes them. A group that the client may not describe is
GROUP_AUTHORIZATION_FAILED. A group that is named twice has one row (differs from Kafka: `request.repetitions`).
"""

from __future__ import annotations

from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.members import Member
from odradek.broker.coordinator.classic_group.state_table import State
from odradek.broker.request.authorized_operations import NOT_REQUESTED, operations_on_group
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_FIRST_VERSION_WITH_NOT_FOUND = 6


def handle(
    services: Services, context: RequestContext, request: DescribeGroupsRequest
) -> Steps[DescribeGroupsResponse]:
    rows = []
    for group_id in dict.fromkeys(request.groups):
        try:
            check(services, context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
            row = _describe(services, group_id)
        except KafkaError as error:
            row = _refused(group_id, error, context.api_version)
        if row.error_code == ErrorCode.NONE:
            row.authorized_operations = NOT_REQUESTED
            if request.include_authorized_operations:
                row.authorized_operations = operations_on_group(services, context, group_id)
        rows.append(row)
        yield
    return DescribeGroupsResponse(groups=rows)


def error_response(request: DescribeGroupsRequest, code: ErrorCode, message: str) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(code, message, each) for each in dict.fromkeys(request.groups)]
    )


def _describe(services: Services, group_id: str) -> DescribedGroup:
    group = services.groups.shard_of(group_id).groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    protocol = group.protocol_name if group.is_stable else None
    return DescribedGroup(
        ErrorCode.NONE,
        None,
        group_id,
        group.state,
        group.protocol_type,
        protocol or "",
        [_member(member, protocol) for member in group.members],
    )


def _member(member: Member, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.metadata(protocol),
        member.assignment,
    )


def _refused(group_id: str, error: KafkaError, version: int) -> DescribedGroup:
    if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return DescribedGroup(error.code, None, group_id)
    if version >= _FIRST_VERSION_WITH_NOT_FOUND:
        return DescribedGroup(error.code, error.detail, group_id, State.DEAD.value)
    return DescribedGroup(ErrorCode.NONE, None, group_id, State.DEAD.value)
