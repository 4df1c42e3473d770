"""DeleteGroups (42), versions 0–2: delete groups without members, with their committed offsets.

Each group succeeds or fails independently: GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP. The response is sent when the deletions
are in the log.
"""

from __future__ import annotations

import asyncio
from typing import cast

from odradek.broker.coordinator.offsets.events import DeleteGroup
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(services: Services, context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    time_slice = services.time_slices.begin(context.connection)
    rows = []
    for group_id in dict.fromkeys(request.groups_names):
        await time_slice.step()
        refused = refusal_of(services, context, Operation.DELETE, ResourceType.GROUP, group_id)
        if refused is not None:
            rows.append(DeletableGroupResult(group_id, refused.code))
        else:
            rows.append(await _delete(services, group_id))
    return DeleteGroupsResponse(results=rows)


def error_response(request: DeleteGroupsRequest, code: ErrorCode, message: str) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id, code) for group_id in request.groups_names])


async def _delete(services: Services, group_id: str) -> DeletableGroupResult:
    try:
        answer = services.groups.submit(group_id, DeleteGroup(PendingReply()))
        result = await answer if isinstance(answer, asyncio.Future) else answer
    except KafkaError as error:
        return DeletableGroupResult(group_id, error.code)
    return cast("DeletableGroupResult", result)
