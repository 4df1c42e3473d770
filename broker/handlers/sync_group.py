"""SyncGroup (14), versions 0–5: get a member's assignment; answered when the leader has sent the assignments of all.

An empty group id is INVALID_GROUP_ID; without the right to read the group the answer is GROUP_AUTHORIZATION_FAILED.
From version 5 on (KIP-559) protocol type and name are required: INCONSISTENT_GROUP_PROTOCOL. The group handles the
rest: `odradek.broker.coordinator.classic_group.group`.
"""

from __future__ import annotations

import asyncio
from typing import cast

from odradek.broker.coordinator.classic_group.events import Sync
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.group_ids import check_group_id
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_WITH_PROTOCOL = 5


Answer = SyncGroupResponse | asyncio.Future[SyncGroupResponse]


def handle(services: Services, context: RequestContext, request: SyncGroupRequest) -> Steps[Answer]:
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    if context.api_version >= _FIRST_VERSION_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are missing")
    assignments = {}
    for each in request.assignments:
        yield
        assignments[each.member_id] = bytes(each.assignment)
    sync = Sync(
        PendingReply(),
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        assignments,
    )
    answer = services.groups.submit(request.group_id, sync)
    return cast("Answer", answer)


def error_response(request: SyncGroupRequest, code: ErrorCode, message: str) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
