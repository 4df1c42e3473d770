"""LeaveGroup (13), versions 0–5: remove members from a group at once.

Versions 0–2 name one member, whose error is that of the response; later versions (KIP-345) have a row for each member.
An administrator removes static members by their instance ids alone. An empty group id is INVALID_GROUP_ID; without the
right to read the group the answer is GROUP_AUTHORIZATION_FAILED. The group handles the rest:
`odradek.broker.coordinator.classic_group.group`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import cast

from odradek.broker.coordinator.classic_group.events import Leave, Leaving
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.group_ids import check_group_id
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

_FIRST_VERSION_WITH_SEVERAL_MEMBERS = 3
_NO_REASON = "not provided"
_AT_ONCE = 1000
"""The most members that leave in one event of the group."""


def handle(
    services: Services, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    several = context.api_version >= _FIRST_VERSION_WITH_SEVERAL_MEMBERS
    members = request.members if several else [MemberIdentity(request.member_id)]
    if len(members) > _AT_ONCE:
        return _leave_in_turns(services, context, request.group_id, members)
    answer = services.groups.submit(request.group_id, _leave(members))
    if isinstance(answer, asyncio.Future):
        return _later(cast("asyncio.Future[LeaveGroupResponse]", answer), several)
    return _in_version(cast("LeaveGroupResponse", answer), several)


def error_response(request: LeaveGroupRequest, code: ErrorCode, message: str) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)


def _leave(members: Sequence[MemberIdentity]) -> Leave:
    leaving = [Leaving(each.member_id, each.group_instance_id, each.reason or _NO_REASON) for each in members]
    return Leave(PendingReply(), tuple(leaving))


async def _leave_in_turns(
    services: Services, context: RequestContext, group_id: str, members: Sequence[MemberIdentity]
) -> LeaveGroupResponse:
    """Remove a thousand members at a time, so that the group does not block the event loop for long."""
    rows: list[MemberResponse] = []
    time_slice = services.time_slices.begin(context.connection)
    for first in range(0, len(members), _AT_ONCE):
        await time_slice.step()
        answer = services.groups.submit(group_id, _leave(members[first : first + _AT_ONCE]))
        response = cast("LeaveGroupResponse", await answer if isinstance(answer, asyncio.Future) else answer)
        if response.error_code:
            return response
        rows += response.members
    return LeaveGroupResponse(members=rows)


async def _later(answer: asyncio.Future[LeaveGroupResponse], several: bool) -> LeaveGroupResponse:
    return _in_version(await answer, several)


def _in_version(response: LeaveGroupResponse, several: bool) -> LeaveGroupResponse:
    if several or response.error_code:
        return response
    [row] = response.members
    return LeaveGroupResponse(error_code=row.error_code)
