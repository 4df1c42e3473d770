"""Heartbeat (12), versions 0–4: keep a member alive, and report a rebalance of its group.

An empty group id is INVALID_GROUP_ID; without the right to read the group the answer is GROUP_AUTHORIZATION_FAILED.
While the group is being loaded the answer has no error: the member cannot be checked yet, and an error would make it
rejoin. The group handles the rest: `odradek.broker.coordinator.classic_group.group`.
"""

from __future__ import annotations

import asyncio
from typing import cast

from odradek.broker.coordinator.classic_group.events import Heartbeat
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.group_ids import check_group_id
from odradek.broker.request.rights import check
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    services: Services, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | asyncio.Future[HeartbeatResponse]:
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    heartbeat = Heartbeat(PendingReply(), request.generation_id, request.member_id, request.group_instance_id)
    answer = services.groups.submit(request.group_id, heartbeat)
    return cast("HeartbeatResponse | asyncio.Future[HeartbeatResponse]", answer)


def error_response(request: HeartbeatRequest, code: ErrorCode, message: str) -> HeartbeatResponse:
    loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else code)
